import { randomUUID } from 'node:crypto';
import type { StepEvent } from '../../../src/agent/runner.ts';
import type {
  AcceptedTurn,
  ApiBackend,
  ChatRequest,
  PlatformAnswer,
  PlatformRequest,
  Readiness,
  ReadTurn,
  Reply,
} from '../../../src/api/backend.ts';
import { JobService } from '../../../src/cron/job-service.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import { MoiraiError } from '../../../src/errors/moirai-error.ts';
import { createLogger } from '../../../src/log/logger.ts';
import type { ShownApproval } from '../../../src/people/approval-view.ts';
import type { ConversationRef, Received } from '../../../src/store/transactions/conversations.ts';
import { TurnChannel } from '../../../src/turns/turn-channel.ts';
import type { TurnActivity } from '../../../src/turns/turn-event.ts';
import { NO_APPROVALS, NO_TURNS } from './absent-parts.ts';

/** What the agent does with a text: shows progress, waits, and says how it came out. */
export type Script = (
  request: ChatRequest,
  show: (progress: StepEvent) => void,
) => Promise<Partial<Reply>> | Partial<Reply>;

interface Kept {
  readonly body: string;
  readonly accepted: AcceptedTurn;
}

const USAGE = { input: 7, output: 3 };

/** A gateway without a model: what is said becomes a real turn of a real session, and a script answers it. */
export class ScriptedBackend implements ApiBackend {
  readonly model = 'loom-1';
  readonly said: ChatRequest[] = [];
  readonly #engine: Engine;
  readonly #kept = new Map<string, Kept>();
  readonly #doing = new Map<string, TurnActivity>();
  #state: Readiness['state'] = 'ready';
  script: Script = (request) => ({ text: `You said: ${request.text}` });

  readonly jobs: ApiBackend['jobs'];
  /** What waits for a person, as a test says. */
  readonly asked: ShownApproval[] = [];
  readonly approvals = { ...NO_APPROVALS, waiting: async () => this.asked };
  readonly turns: ApiBackend['turns'] = {
    ...NO_TURNS,
    find: (id) => this.#turn(id),
    wait: (id) => this.#turn(id),
    stop: (id) => this.#turn(id),
  };

  constructor(engine: Engine) {
    this.#engine = engine;
    const service = new JobService({ store: engine.store, timezone: 'UTC', random: Math.random });
    this.jobs = {
      service,
      target: async (to) => {
        if (to === 'home' || to === 'local') return { to };
        throw new MoiraiError('target_unknown', `there is no target ${to}`);
      },
    };
  }

  async receive(request: ChatRequest): Promise<AcceptedTurn> {
    if (this.#state === 'draining') throw new MoiraiError('draining', 'the gateway is draining');
    const { idempotencyKey, caller, ...body } = request;
    const { credential } = caller;
    if (idempotencyKey === null) return this.#take(request);
    const known = this.#kept.get(`${credential} ${idempotencyKey}`);
    if (known === undefined) {
      const accepted = await this.#take(request);
      this.#kept.set(`${credential} ${idempotencyKey}`, { body: JSON.stringify(body), accepted });
      return accepted;
    }
    if (known.body === JSON.stringify(body)) return known.accepted;
    throw new MoiraiError('idempotency_conflict', `"${idempotencyKey}" came with another body before`);
  }

  async #turn(turnId: string): Promise<ReadTurn> {
    const turn = await this.#engine.store.read('turnResult', { turnId });
    if (turn === null) return NO_TURNS.find(turnId);
    return { turnId, sessionId: turn.sessionId, state: turn.state, reply: null };
  }

  /** One platform that proves itself by a header, and says what it was brought. */
  async receiveFromPlatform(name: string, { headers, body }: PlatformRequest): Promise<PlatformAnswer | null> {
    if (name !== 'pigeon') return null;
    const isGrey = headers['x-feather'] === 'grey';
    return isGrey ? { status: 200, body: Buffer.from(body).toString('hex') } : { status: 401 };
  }

  async models(): Promise<readonly string[]> {
    return ['loom-1', 'weaver/loom-2'];
  }

  async readiness(): Promise<Readiness> {
    return { state: this.#state, checks: { store: { ok: true, detail: 'sqlite' } } };
  }

  state(): Readiness['state'] {
    return this.#state;
  }

  async drain(): Promise<void> {
    this.#state = 'draining';
  }

  async undrain(): Promise<void> {
    this.#state = 'ready';
  }

  async gauges(): Promise<Readonly<Record<string, number>>> {
    return { turns_running: this.#doing.size, turns_waiting: 0 };
  }

  turnActivity(sessionId: string): TurnActivity | null {
    return this.#doing.get(sessionId) ?? null;
  }

  async #take(request: ChatRequest): Promise<AcceptedTurn> {
    this.said.push(request);
    const conversation = this.#conversationOf(request);
    if (request.text === '/new') return this.#reset(conversation);
    const received = await this.#engine.receive({ conversation, text: request.text, originRef: null, by: 'user' });
    const events = new TurnChannel(received.turn.id, createLogger({ level: 'silent', format: 'json' }), () => 0);
    const reply = this.#answer(request, received, (event) => events.publish(event));
    reply.catch(() => undefined); // Whoever waits for the reply hears of it; nobody may be waiting.
    return {
      sessionId: received.session.id,
      turnId: received.turn.id,
      reply,
      events,
    };
  }

  #conversationOf({ conversation, platform, userId, caller: { namespace } }: ChatRequest): ConversationRef {
    const name = conversation ?? `one-shot-${randomUUID()}`;
    const chat = encodeURIComponent(name);
    const key = `agent:main:${platform}:dm:${namespace === null ? chat : `${namespace}:${chat}:`}`;
    const origin = conversation === null ? { once: true } : null;
    return { key, kind: 'api', platform, userId, origin, attached: false };
  }

  async #reset(conversation: ConversationRef): Promise<AcceptedTurn> {
    const { session } = await this.#engine.reset(conversation, { slash: { command: 'new', args: '' } });
    const facts = { sessionId: session.id, turnId: null };
    const rest = { outcome: 'done', errorCode: null, model: null, usage: null } as const;
    return {
      ...facts,
      reply: Promise.resolve({ ...facts, ...rest, text: 'A fresh start.' }),
      events: null,
    };
  }

  async #answer(
    request: ChatRequest,
    { session, turn }: Received,
    show: (progress: StepEvent) => void,
  ): Promise<Reply> {
    this.#doing.set(session.id, { phase: 'thinking', tool: null });
    // The client is told that it was taken before anything happens.
    await new Promise((next) => setTimeout(next, 5));
    const scripted = await this.script(request, (progress) => {
      if (progress.type === 'tool' && progress.state === 'start')
        this.#doing.set(session.id, { phase: 'tool', tool: progress.name });
      show(progress);
    });
    this.#doing.delete(session.id);
    const facts = { sessionId: session.id, turnId: turn.id, model: request.model ?? this.model, usage: USAGE };
    const reply: Reply = { ...facts, text: '', outcome: 'done', errorCode: null, ...scripted };
    await this.#engine.finish({ sessionId: session.id, epoch: session.epoch }, turn.id, {
      ...{ outcome: reply.outcome, response: reply.text, model: reply.model, usage: reply.usage },
      messages: [
        { role: 'user', text: request.text, turnId: turn.id },
        { role: 'assistant', text: reply.text, turnId: turn.id },
      ],
    });
    if (request.conversation === null) await this.#engine.end(session.id, { reason: 'api_close', trigger: 'api' });
    return reply;
  }
}
