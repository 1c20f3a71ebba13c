import { createHash, randomUUID } from 'node:crypto';
import type { AcceptedTurn, ApiBackend, ChatRequest, Reply } from '../api/backend.ts';
import type { Figures } from '../api/figures.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { isParked } from '../lifecycle/session.ts';
import { keyFor } from '../lifecycle/session-key.ts';
import type { ConversationRef } from '../store/transactions/conversations.ts';
import type { MessageToAppend } from '../store/transactions/messages.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import { parseCommand } from '../turns/command.ts';
import type { InboundMessage, ReceiveResult } from '../turns/conversations.ts';
import type { TurnChannel } from '../turns/turn-channel.ts';
import type { Gateway } from './gateway.ts';

const IDEMPOTENCY_MS = 24 * 3_600_000;

export interface ApiBackendOptions {
  readonly gateway: Gateway;
  readonly model: string;
  readonly readiness: ApiBackend['readiness'];
  readonly state: ApiBackend['state'];
  readonly figures: Figures;
}

/** What HTTP may ask of the gateway. */
export function apiBackend({ gateway, model, readiness, state, figures }: ApiBackendOptions): ApiBackend {
  return {
    model,
    readiness,
    state,
    receive: (request) => say(gateway, request),
    models: () => gateway.runner.models(),
    turnActivity: (sessionId) => {
      return gateway.turns.runOf(sessionId)?.channel.activity ?? null;
    },
    jobs: { service: gateway.cron.jobs, target: (text) => gateway.cron.target(text) },
    receiveFromPlatform: async (name, request) => {
      const answer = await gateway.chat.find(name)?.receiveWebhook?.(request);
      return answer?.status ?? 404;
    },
    drain: () => gateway.drain('operator'),
    undrain: () => gateway.undrain(),
    gauges: async () => {
      const { running, waiting } = gateway.load;
      return { turns_running: running, turns_waiting: waiting };
    },
    figures,
    platforms: () => gateway.chat.status(),
  };
}

async function say(gateway: Gateway, request: ChatRequest): Promise<AcceptedTurn> {
  const conversation = conversationOf(request);
  const originRef = refOf(request);
  // A one-shot request has no conversation that a command could be about.
  const verbatim = request.conversation === null && request.history.length > 0;
  const isCommand = !verbatim && parseCommand(request.text) !== null;
  const known = originRef === null ? null : await knownTurn(gateway, originRef, isCommand);
  if (known !== null) {
    await assertSame(gateway, known, request, conversation);
    return followed(gateway, gateway.turns.channels.follow(known.id), known.sessionId, request);
  }
  const result = await gateway.conversations.receive({
    conversation,
    text: request.text,
    originRef,
    refTtlMs: IDEMPOTENCY_MS,
    before: await rowsBefore(gateway, conversation, request),
    ...(verbatim ? { verbatim } : {}),
    ...(request.caller.admin ? {} : ofOthers(request)),
  });
  if (result.type === 'answer') return answered(gateway, result, conversation);
  const { duplicate, turn, session } = result.received;
  if (duplicate && !isCommand) await assertSame(gateway, turn, request, conversation);
  if (isParked(session) && turn.state === 'queued') {
    throw new MoiraiError('session_suspended', `an operator parked this session; the message waits as turn ${turn.id}`);
  }
  return followed(gateway, result.channel, session.id, request);
}

/** What a key that is not an admin's may not do: what concerns more than its own conversations. */
function ofOthers({ userId }: ChatRequest): Pick<InboundMessage, 'mayRun' | 'by'> {
  return {
    mayRun: ({ name, operator }) => (operator ? `/${name} needs a key with the scope admin.` : null),
    by: { userId, admin: false },
  };
}

function conversationOf({ conversation, platform, userId, caller, idempotencyKey }: ChatRequest): ConversationRef {
  const once = idempotencyKey === null ? randomUUID() : digest(`${caller.credential} ${idempotencyKey}`);
  const scope = caller.namespace ?? undefined;
  const chat = conversation ?? `once-${once}`;
  const key = keyFor({ platform, type: 'dm', scope, chat }, { groupPerUser: true, threadPerUser: false });
  const kind = platform === 'web' ? 'chat' : 'api';
  return { key, kind, platform, userId, origin: { platform, chat }, attached: conversation === null };
}

function refOf({ platform, caller, idempotencyKey }: ChatRequest): string | null {
  return idempotencyKey === null ? null : `${platform}:${digest(`${caller.credential} ${idempotencyKey}`)}`;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 32);
}

/** The turn an idempotency key stands for, as long as it is remembered. Commands are recognised where they are accepted. */
async function knownTurn(
  { engine: { store } }: Gateway,
  originRef: string,
  isCommand: boolean,
): Promise<TurnResultRow | null> {
  const [turn, command] = await Promise.all([
    store.read('turnByRef', { originRef, ttlMs: IDEMPOTENCY_MS }),
    store.read('acceptedCommand', { ref: originRef, ttlMs: IDEMPOTENCY_MS }),
  ]);
  const wasCommand = command !== null;
  if (wasCommand !== isCommand && (wasCommand || turn !== null)) throw conflict();
  return isCommand ? null : turn;
}

async function assertSame(
  { engine: { store } }: Gateway,
  { id: turnId, sessionId }: Pick<TurnResultRow, 'id' | 'sessionId'>,
  { text }: ChatRequest,
  { key }: ConversationRef,
): Promise<void> {
  const [kept, session] = await Promise.all([
    store.read('turnText', { turnId }),
    store.read('getSession', { sessionId }),
  ]);
  if (kept !== text.toWellFormed() || (session?.key ?? key) !== key) throw conflict();
}

function conflict(): MoiraiError {
  return new MoiraiError('idempotency_conflict', 'the idempotency key was used before, with another body');
}

/** What the turn finds in the transcript: what the client says was said before, and the model it asks for. */
async function rowsBefore(
  gateway: Gateway,
  conversation: ConversationRef,
  request: ChatRequest,
): Promise<MessageToAppend[]> {
  const rows: MessageToAppend[] = request.history.map(({ role, text }) => {
    return role === 'assistant' ? { role, text, turnId: null } : { role: 'user', text, turnId: null };
  });
  if (request.model === null) return rows;
  if (!(await isKnownModel(gateway, request.model))) {
    throw new MoiraiError('model_unknown', `there is no model ${request.model}`);
  }
  const { engine, runner, transcripts } = gateway;
  const open = await engine.store.read('openSession', { key: conversation.key });
  const chosen = (open === null ? null : await transcripts.chosenModel(open)) ?? runner.model;
  if (chosen !== request.model) rows.push({ role: 'setting', text: '', turnId: null, data: { model: request.model } });
  return rows;
}

async function isKnownModel({ runner }: Gateway, model: string): Promise<boolean> {
  const known = await runner.models();
  return known.length === 0 || known.includes(model);
}

function answered(
  gateway: Gateway,
  result: Extract<ReceiveResult, { type: 'answer' }>,
  conversation: ConversationRef,
): AcceptedTurn {
  const sessionId = result.session?.id ?? '';
  const facts = { turnId: null, outcome: 'done', errorCode: null, model: null, usage: null } as const;
  const reply: Promise<Reply> = endIfOnce(gateway, conversation.attached ? sessionId : '').then(() => ({
    ...facts,
    sessionId,
    text: result.text,
  }));
  return { sessionId, turnId: null, reply, events: null };
}

function followed(gateway: Gateway, events: TurnChannel, sessionId: string, request: ChatRequest): AcceptedTurn {
  const { turnId } = events;
  return { sessionId, turnId, reply: replyOf(gateway, events.ended, turnId, request), events };
}

async function replyOf(
  gateway: Gateway,
  over: Promise<TurnResultRow | null>,
  turnId: string,
  request: ChatRequest,
): Promise<Reply> {
  const turn = await over;
  if (turn === null && gateway.conversations.draining) {
    throw new MoiraiError('draining', `the gateway stops; turn ${turnId} goes on afterwards`);
  }
  if (turn === null) throw new MoiraiError('turn_not_found', `turn ${turnId} was removed with its session`);
  if (request.conversation === null) await endIfOnce(gateway, turn.sessionId);
  return {
    sessionId: turn.sessionId,
    turnId: turn.id,
    text: turn.response ?? '',
    outcome: turn.outcome ?? 'interrupted',
    errorCode: turn.error,
    model: turn.model,
    usage: turn.usage,
  };
}

/** A one-shot session ends with its reply. */
async function endIfOnce(gateway: Gateway, sessionId: string): Promise<void> {
  const { engine } = gateway;
  if (sessionId === '') return;
  await engine.settle((context) => engine.end(sessionId, { reason: 'api_close', trigger: 'api' }, context));
}
