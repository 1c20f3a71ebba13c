import { createHash, randomUUID } from 'node:crypto';
import type {
  AcceptedTurn,
  ApiBackend,
  ChatRequest,
  PlatformAnswer,
  PlatformRequest,
  ReadTurn,
  Reply,
} from '../api/backend.ts';
import type { Figures } from '../api/figures.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { personIn } from '../lifecycle/namespace.ts';
import { isOneShot, isParked, type Session } from '../lifecycle/session.ts';
import { keyFor, platformName } from '../lifecycle/session-key.ts';
import type { Answerer } from '../people/access.ts';
import { answerApproval } from '../people/answer-approval.ts';
import { processTimers } from '../queue/timers.ts';
import type { ConversationRef } from '../store/transactions/conversations.ts';
import type { MessageToAppend } from '../store/transactions/messages.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import { parseCommand } from '../turns/command.ts';
import type { InboundMessage, ReceiveResult } from '../turns/conversations.ts';
import { INTERRUPTED_TEXTS, PARKED_IN_TURN_TEXT } from '../turns/texts.ts';
import type { TurnChannel } from '../turns/turn-channel.ts';
import { TurnReader } from '../turns/turn-reader.ts';
import type { Gateway } from './gateway.ts';

const IDEMPOTENCY_MS = 24 * 3_600_000;

/** Who has the API key answers for everything. */
const KEY_HOLDER: Answerer = { name: 'api', person: null, admin: true };

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
    turns: turnsOf(gateway),
    approvals: {
      waiting: () => gateway.approvals.waiting(),
      answer: (id, decision, reason) =>
        answerApproval(gateway.engine, 'admins', { id, decision, reason, by: KEY_HOLDER }),
    },
    turnActivity: (sessionId) => {
      return gateway.turns.runOf(sessionId)?.channel.activity ?? null;
    },
    jobs: { service: gateway.cron.jobs, target: (text) => gateway.cron.target(text) },
    receiveFromPlatform: (name, request) => handToPlatform(gateway.chat, name, request),
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

/** An account that has a way in of its own is the only one that takes what comes there, also while it is away. */
async function handToPlatform(
  chat: Gateway['chat'],
  name: string,
  request: PlatformRequest,
): Promise<PlatformAnswer | null> {
  const account = platformName({ platform: name, account: request.path });
  const isAccount = chat.names.includes(account);
  const meant = isAccount ? account : name;
  const platform = chat.find(meant);
  if (platform !== null)
    return (await platform.receiveWebhook?.(isAccount ? { ...request, path: '' } : request)) ?? null;
  if (chat.names.includes(meant)) throw new MoiraiError('platform_not_ready', `${meant} is not connected`);
  return null;
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
    return followed(gateway, gateway.turns.channels.follow(known.id), known.sessionId);
  }
  const result = await gateway.conversations.receive({
    conversation,
    text: request.text,
    originRef,
    refTtlMs: IDEMPOTENCY_MS,
    before: await rowsBefore(gateway, conversation, request),
    ...(verbatim ? { verbatim } : {}),
    ...(request.caller.admin ? {} : ofOthers(conversation)),
  });
  if (result.type === 'answer') return answered(gateway, result);
  const { duplicate, turn, session } = result.received;
  if (duplicate && !isCommand) await assertSame(gateway, turn, request, conversation);
  if (isParked(session) && turn.state === 'queued') {
    throw new MoiraiError(
      'session_suspended',
      `an operator parked this session; the message waits as turn ${turn.id}`,
      {
        details: { turn_id: turn.id },
      },
    );
  }
  return followed(gateway, result.channel, session.id);
}

/** What a key that is not an admin's may not do: what concerns more than its own conversations. */
function ofOthers({ key, userId }: ConversationRef): Pick<InboundMessage, 'mayRun' | 'by'> {
  return {
    mayRun: ({ name, operator }) => (operator ? `/${name} needs a key with the scope admin.` : null),
    by: { name: 'api', person: personIn(key, userId), admin: false },
  };
}

function conversationOf({ conversation, platform, userId, caller, idempotencyKey }: ChatRequest): ConversationRef {
  const once = idempotencyKey === null ? randomUUID() : digest(`${caller.credential} ${idempotencyKey}`);
  const scope = caller.namespace ?? undefined;
  const chat = conversation ?? `once-${once}`;
  const key = keyFor({ platform, type: 'dm', scope, chat }, { groupPerUser: true, threadPerUser: false });
  const kind = platform === 'web' ? 'chat' : 'api';
  const origin = { platform, chat, ...(conversation === null ? { once: true } : {}) };
  return { key, kind, platform, userId, origin, attached: false };
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

function answered(gateway: Gateway, result: Extract<ReceiveResult, { type: 'answer' }>): AcceptedTurn {
  const sessionId = result.session?.id ?? '';
  const facts = { turnId: null, outcome: 'done', errorCode: null, model: null, usage: null } as const;
  const reply: Promise<Reply> = endOneShot(gateway, result.session).then(() => ({
    ...facts,
    sessionId,
    text: result.text,
  }));
  return { sessionId, turnId: null, reply, events: null };
}

function followed(gateway: Gateway, events: TurnChannel, sessionId: string): AcceptedTurn {
  const { turnId } = events;
  return { sessionId, turnId, reply: replyOf(gateway, events.ended, turnId), events };
}

function turnsOf(gateway: Gateway): ApiBackend['turns'] {
  const { turns } = gateway;
  const reader = new TurnReader(turns, gateway.engine.store, processTimers);
  return {
    find: async (turnId) => readTurnOf(await reader.find(turnId)),
    wait: async (turnId, ms, signal) => readTurnOf(await reader.wait(turnId, ms, signal)),
    follow: async (turnId) => {
      const { sessionId } = await reader.find(turnId);
      const { ended } = turns.channels.follow(turnId);
      let told: Promise<unknown> = Promise.resolve();
      const events: AcceptedTurn['events'] = {
        watch: (listener) => {
          const gone = new AbortController();
          // A turn that is removed meanwhile is told by its reply.
          told = reader.follow(turnId, listener, gone.signal).catch(() => undefined);
          return () => gone.abort();
        },
      };
      const reply = replyOf(gateway, ended, turnId).then(async (over) => {
        await told;
        return over;
      });
      return { sessionId, turnId, reply, events };
    },
    stop: async (turnId) => {
      await turns.stopTurn(await reader.find(turnId));
      return readTurnOf(await reader.find(turnId));
    },
  };
}

function readTurnOf(turn: TurnResultRow): ReadTurn {
  const { id: turnId, sessionId, state } = turn;
  return { turnId, sessionId, state, reply: state === 'over' ? resultOf(turn) : null };
}

async function replyOf(gateway: Gateway, over: Promise<TurnResultRow | null>, turnId: string): Promise<Reply> {
  const turn = await over;
  if (turn === null) throw await whyNotOver(gateway, turnId);
  return resultOf(turn);
}

function resultOf(turn: TurnResultRow): Reply {
  const { response, outcome, error } = turn;
  const whys: Readonly<Record<string, string>> = {
    turn_stopped: INTERRUPTED_TEXTS.stop,
    session_suspended: PARKED_IN_TURN_TEXT,
  };
  const stopped = whys[error ?? ''] ?? INTERRUPTED_TEXTS.ended;
  return {
    sessionId: turn.sessionId,
    turnId: turn.id,
    text: response ?? (outcome === 'interrupted' ? stopped : ''),
    outcome: outcome ?? 'interrupted',
    errorCode: error,
    model: turn.model,
    usage: turn.usage,
  };
}

/** The gateway stops before the turn is over; or the turn is in the store no longer. */
async function whyNotOver({ engine }: Gateway, turnId: string): Promise<MoiraiError> {
  const kept = await engine.store.read('getTurn', { turnId });
  return kept === null
    ? new MoiraiError('turn_not_found', `turn ${turnId} was removed with its session`)
    : new MoiraiError('turn_interrupted', `the gateway stops; turn ${turnId} goes on afterwards`, {
        details: { turn_id: turnId },
      });
}

/** A session that a command of a one-shot request started ends with its answer. */
async function endOneShot({ engine }: Gateway, session: Session | null): Promise<void> {
  if (session === null || !isOneShot(session)) return;
  const sessionId = session.id;
  await engine.settle((context) => engine.end(sessionId, { reason: 'api_close', trigger: 'api' }, context));
}
