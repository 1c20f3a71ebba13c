import { MoiraiError } from '../../errors/moirai-error.ts';
import { arrive } from '../../lifecycle/arrival.ts';
import type { Command, StartCommand } from '../../lifecycle/commands.ts';
import { policyFor } from '../../lifecycle/reset-policy.ts';
import { hasApplied, type Session, type SessionWithTurns, type Turn } from '../../lifecycle/session.ts';
import type { Actor, ResetCause, Trigger } from '../../lifecycle/states.ts';
import { selectValues, text } from '../table.ts';
import { storableText } from '../text.ts';
import { type Ask, batch, type Query, query, type Tx, type TxContext } from '../transaction.ts';
import { apply, type Extras } from './apply.ts';
import { takeUnanswered } from './external-notes.ts';
import { appendCommand, type MessageToAppend, messageRows } from './messages.ts';
import { TURNS } from './rows.ts';
import {
  type CommandContext,
  enter,
  enterKey,
  enterSession,
  lockKey,
  openSessionQuery,
  sessionQuery,
  type WriteScope,
  withTurns,
} from './sessions.ts';

/** Who talks where: what a session takes over from its conversation when it starts. */
export type ConversationRef = Pick<Session, 'key' | 'kind' | 'platform' | 'userId' | 'origin' | 'attached'>;

type EndFacts = Pick<Extract<Command, { name: 'end' }>, 'reason' | 'cause' | 'trigger'>;

export interface StartArgs extends Partial<Pick<StartCommand, 'parentId' | 'lineage' | 'title'>> {
  readonly context: CommandContext;
  readonly sessionId: string;
  readonly conversation: ConversationRef;
}

/** Starts a session by itself (a batch, a terminal, a child). Repeated with the same id it returns the first one. */
export function* startSession(ctx: TxContext, args: StartArgs): Tx<Session> {
  const scope = yield* enter(ctx, args.context);
  yield* lockKey(ctx, args.conversation.key);
  const [known] = yield* batch(sessionQuery(ctx, args.sessionId));
  if (known !== undefined && hasApplied(known.session, args.context.commandId)) return known.session;
  const { context: _, sessionId, conversation, ...facts } = args;
  const start = startCommand(sessionId, conversation, facts);
  const loaded =
    known === undefined ? yield* applyStart(ctx, scope, start, []) : yield* apply(ctx, scope, known, [start]);
  return loaded.session;
}

export interface ReceiveArgs {
  readonly context: CommandContext;
  readonly conversation: ConversationRef;
  readonly text: string;
  /** Names the message on its platform: received twice, it is one turn. */
  readonly originRef: string | null;
  /** For so long; without it for ever. */
  readonly refTtlMs?: number;
  readonly by: Actor;
  readonly turnId: string;
  /** The id of the session that starts if none can be continued. */
  readonly newSessionId: string;
  /** Of a session that this starts. */
  readonly title?: string;
  /** Rows that its turn finds in the transcript: what the client says was said before, and what it asks for. */
  readonly before?: readonly MessageToAppend[];
  /** Begin the turn in the same transaction when nothing else waits or runs. */
  readonly begin: boolean;
}

export interface Received {
  readonly session: Session;
  readonly turn: Turn;
  readonly begun: boolean;
  readonly started: boolean;
  /** The session this message found and could not continue. */
  readonly ended: { readonly id: string; readonly cause: ResetCause } | null;
  /** The message was here before; this is its turn, and nothing was changed. */
  readonly duplicate: boolean;
}

/**
 * A message arrives: it becomes a queued turn of the session it belongs to, in one transaction with whatever it does
 * to that session. Only after this may the platform be told that the message was taken.
 */
export function* receive(ctx: TxContext, args: ReceiveArgs): Tx<Received> {
  const { scope, known, loaded } = yield* enterReceive(ctx, args);
  if (known !== undefined) return known;
  const cause = loaded === undefined ? null : arrival(ctx, loaded.session);
  if (loaded !== undefined && cause === null) {
    const after = yield* enqueue(ctx, scope, args, loaded, null);
    return answer(after, args, { started: false, ended: null });
  }
  if (loaded === undefined || cause === null) {
    const start = startCommand(args.newSessionId, args.conversation, { title: args.title ?? null });
    const after = yield* enqueue(ctx, scope, args, null, start);
    return answer(after, args, { started: true, ended: null });
  }
  const end: EndFacts = { reason: 'auto_reset', cause, trigger: 'message' };
  const start = startCommand(args.newSessionId, args.conversation, { parentId: loaded.session.id, lineage: 'reset' });
  const successor = yield* replace(ctx, scope, loaded, end, start, []);
  const after = yield* enqueue(ctx, scope, args, successor, null);
  return answer(after, args, { started: true, ended: { id: loaded.session.id, cause } });
}

function arrival(ctx: TxContext, session: Session): ResetCause | null {
  return arrive(session, ctx.now, policyFor(ctx.rules, session.key), ctx.rules.resumeWindowMs);
}

interface Arrived {
  readonly scope: WriteScope;
  /** The answer, when the message was here before. */
  readonly known: Received | undefined;
  readonly loaded: SessionWithTurns | undefined;
}

/** `enterKey` for a message: whether it was here before is asked in the same breath. */
function* enterReceive(ctx: TxContext, args: ReceiveArgs): Tx<Arrived> {
  const { scope, loaded, more } = yield* enterKey(ctx, args.context, args.conversation.key, knownTurn(args));
  if (more === undefined) return { scope, loaded, known: undefined };
  return { scope, loaded, known: yield* repeated(ctx, args, more) };
}

function knownTurn({ originRef, turnId }: ReceiveArgs): Ask<Turn | undefined> {
  const [column, value] = originRef === null ? (['id', turnId] as const) : (['origin_ref', originRef] as const);
  return {
    queries: [TURNS.query(`WHERE ${column} = ?`, value)],
    read: ([rows = []]) => TURNS.rows(rows)[0],
  };
}

function* repeated(ctx: TxContext, args: ReceiveArgs, turn: Turn): Tx<Received | undefined> {
  const again = turn.id === args.turnId;
  if (!again && args.refTtlMs !== undefined && turn.createdAt < ctx.now - args.refTtlMs) {
    yield* query('UPDATE turns SET origin_ref = NULL WHERE id = ?', turn.id);
    return undefined;
  }
  const [loaded] = yield* batch(sessionQuery(ctx, turn.sessionId));
  if (loaded === undefined) return undefined;
  // The same turn id again is the same call again, whose answer was lost: it begins what it began.
  const begun = again && turn.state === 'running' && loaded.session.owner === args.context.instanceId;
  return { session: loaded.session, turn, begun, started: false, ended: null, duplicate: !again };
}

/** Journals the message as a turn, of a session that it may start, and begins it when the session is free. */
function* enqueue(
  ctx: TxContext,
  scope: WriteScope,
  args: ReceiveArgs,
  beginning: SessionWithTurns | null,
  start: StartCommand | null,
): Tx<SessionWithTurns> {
  const loaded = beginning === null ? null : yield* withTurns(beginning, []);
  const text = storableText(args.text, 'the message');
  const owner = loaded?.session.owner ?? args.context.instanceId;
  // What another instance holds, it alone may begin; the message waits for it rather than be refused.
  const free = args.begin && (loaded?.turns.length ?? 0) === 0 && owner === args.context.instanceId;
  const { before = [] } = args;
  const commands: Command[] = [
    ...appendCommand(before, null),
    { name: 'enqueue', turnId: args.turnId, text, by: args.by },
  ];
  if (free) commands.push({ name: 'begin', turnId: args.turnId });
  const extras: Extras = {
    rows: (after) => [
      ...messageRows(ctx, withoutLast(after, before.length), before),
      turnRow(turnIn(after, args.turnId), args, text),
    ],
  };
  if (start !== null) return yield* applyStart(ctx, scope, start, commands, extras);
  return yield* apply(ctx, scope, loaded, commands, extras);
}

/** Starts a session, which knows of what its conversation was told and nobody answered yet; then these commands. */
function* applyStart(
  ctx: TxContext,
  scope: WriteScope,
  start: StartCommand,
  commands: readonly Command[],
  extras: Extras = {},
): Tx<SessionWithTurns> {
  // What dies with its process is nobody's conversation.
  const externalNotes = start.attached ? [] : yield* takeUnanswered(ctx, start.key);
  return yield* apply(ctx, scope, null, [start, ...appendCommand(externalNotes, null), ...commands], {
    ...extras,
    rows: (after) => {
      const empty = { ...after, session: { ...after.session, messageCount: 0 } };
      return [...messageRows(ctx, empty, externalNotes), ...(extras.rows?.(after) ?? [])];
    },
  });
}

/** A session as it was before its last rows were appended. */
function withoutLast({ session, turns }: SessionWithTurns, rows: number): SessionWithTurns {
  return { session: { ...session, messageCount: session.messageCount - rows }, turns };
}

function turnRow(turn: Turn, { originRef, conversation }: ReceiveArgs, text: string): Query {
  const { id, sessionId, by, state, createdAt, startedAt } = turn;
  return {
    sql: `INSERT INTO turns (id, session_id, origin_ref, by_actor, user_id, state, text, created_at, started_at, cuts)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
    params: [id, sessionId, originRef, by, conversation.userId, state, text, createdAt, startedAt],
  };
}

function turnIn(loaded: SessionWithTurns, turnId: string): Turn {
  const turn = loaded.turns.find((candidate) => candidate.id === turnId);
  if (turn === undefined) throw new MoiraiError('internal', `turn ${turnId} was not enqueued`);
  return turn;
}

function answer(loaded: SessionWithTurns, args: ReceiveArgs, facts: Pick<Received, 'started' | 'ended'>): Received {
  const turn = turnIn(loaded, args.turnId);
  return { session: loaded.session, turn, begun: turn.state === 'running', duplicate: false, ...facts };
}

/**
 * Ends one session and starts its successor, in that order and in one transaction. Messages that waited in the old
 * one move on to the new one.
 */
function* replace(
  ctx: TxContext,
  scope: WriteScope,
  beginning: SessionWithTurns,
  end: EndFacts,
  start: StartCommand,
  before: readonly Command[],
): Tx<SessionWithTurns> {
  const old = yield* withTurns(beginning, 'all');
  const waiting = old.turns.filter((turn) => turn.state === 'queued');
  const endCommand: Command = { name: 'end', ...end, successorId: start.sessionId, epoch: null };
  yield* apply(ctx, scope, old, [...before, endCommand]);
  const successor = yield* applyStart(ctx, scope, start, []);
  if (waiting.length === 0) return successor;
  const turns = waiting.map((turn) => ({ ...turn, sessionId: start.sessionId }));
  // The successor's deadline was computed without the messages it inherits; they hold it.
  return yield* apply(ctx, scope, { session: successor.session, turns }, [{ name: 'touch', by: 'system' }]);
}

/**
 * A session that cannot go on (suspended, overdue, its resume marker stale) while messages wait in it: it ends as if
 * one of them had just arrived, and they move on to a fresh one. Returns null when the session can go on.
 */
export function* rollOver(
  ctx: TxContext,
  args: { context: CommandContext; sessionId: string; newSessionId: string },
): Tx<{ session: Session; ended: { id: string; cause: ResetCause } } | null> {
  const { scope, loaded: old } = yield* enterSession(ctx, args.context, args.sessionId);
  if (old.session.state === 'ended') return null;
  const cause = arrival(ctx, old.session);
  if (cause === null || !old.turns.some((turn) => turn.state === 'queued')) return null;
  const start = startCommand(args.newSessionId, conversationOf(old.session), {
    parentId: old.session.id,
    lineage: 'reset',
  });
  const end: EndFacts = { reason: 'auto_reset', cause, trigger: 'message' };
  const loaded = yield* replace(ctx, scope, old, end, start, []);
  return { session: loaded.session, ended: { id: old.session.id, cause } };
}

export interface SlashCommand {
  readonly command: string;
  readonly args: string;
}

export interface ResetArgs {
  readonly context: CommandContext;
  readonly conversation: ConversationRef;
  readonly newSessionId: string;
  readonly title?: string | null;
  /** Recorded as `command:<name>` of the old session. */
  readonly slash?: SlashCommand | null;
}

/** A user asks for a fresh session. Without an open one it only starts one. */
export function* resetSession(ctx: TxContext, args: ResetArgs): Tx<{ session: Session; ended: string | null }> {
  const { scope, loaded: old } = yield* enterKey(ctx, args.context, args.conversation.key);
  if (old !== undefined && old.session.id === args.newSessionId) {
    return { session: old.session, ended: old.session.parentId };
  }
  const note = noteOf(args.slash);
  const title = args.title ?? null;
  if (old === undefined) {
    const start = startCommand(args.newSessionId, args.conversation, { title });
    const loaded = yield* applyStart(ctx, scope, start, note);
    return { session: loaded.session, ended: null };
  }
  const start = startCommand(args.newSessionId, args.conversation, {
    parentId: old.session.id,
    lineage: 'reset',
    title,
    resetOf: old.session.id,
  });
  const end: EndFacts = { reason: 'user_reset', cause: null, trigger: 'command' };
  const loaded = yield* replace(ctx, scope, old, end, start, note);
  return { session: loaded.session, ended: old.session.id };
}

export interface ContinueArgs {
  readonly context: CommandContext;
  /** The session whose transcript the new one sees. */
  readonly fromId: string;
  readonly lineage: 'resume' | 'branch';
  readonly newSessionId: string;
  readonly title?: string | null;
  readonly trigger: Trigger;
  /** Where to continue, if not in the conversation it belonged to. */
  readonly conversation?: ConversationRef | null;
  readonly slash?: SlashCommand | null;
}

/**
 * Resumes or branches: a new session linked to an old one; nothing is reopened. The open session of the conversation
 * ends as `switched` (or `branched`). Resuming a session that is open in that conversation returns it.
 */
export function* continueSession(
  ctx: TxContext,
  args: ContinueArgs,
): Tx<{ session: Session; ended: string | null; created: boolean }> {
  const { scope, loaded: from } = yield* enterSession(ctx, args.context, args.fromId);
  const conversation = args.conversation ?? conversationOf(from.session);
  if (conversation.key !== from.session.key) yield* lockKey(ctx, conversation.key);
  const [open] = yield* batch(openSessionQuery(ctx, conversation.key));
  if (open !== undefined && open.session.id === args.newSessionId) {
    return { session: open.session, ended: null, created: true };
  }
  const stays = args.lineage === 'resume' && open?.session.id === from.session.id;
  if (open !== undefined && stays) return { session: open.session, ended: null, created: false };
  const start = startCommand(args.newSessionId, conversation, {
    parentId: from.session.id,
    lineage: args.lineage,
    title: args.title ?? from.session.title,
  });
  const note = noteOf(args.slash);
  if (open === undefined) {
    const loaded = yield* applyStart(ctx, scope, start, note);
    return { session: loaded.session, ended: null, created: true };
  }
  const reason = args.lineage === 'resume' ? 'switched' : 'branched';
  const loaded = yield* replace(ctx, scope, open, { reason, cause: null, trigger: args.trigger }, start, note);
  return { session: loaded.session, ended: open.session.id, created: true };
}

/** Recorded as `command:<name>`. */
function noteOf(slash: SlashCommand | null | undefined): Command[] {
  return slash ? [{ name: 'note', ...slash }] : [];
}

export interface EndArgs extends Omit<EndFacts, 'cause'> {
  readonly context: CommandContext;
  readonly sessionId: string;
  readonly cause?: EndFacts['cause'];
  readonly epoch?: number | null;
}

/** Ends a session. Ending it twice returns the first end. */
export function* endSession(ctx: TxContext, args: EndArgs): Tx<{ session: Session; already: boolean }> {
  const { scope, loaded } = yield* enterSession(ctx, args.context, args.sessionId);
  const already = !hasApplied(loaded.session, args.context.commandId);
  if (loaded.session.state === 'ended') return { session: loaded.session, already };
  const { reason, cause = null, trigger, epoch = null } = args;
  const whole = yield* withTurns(loaded, 'all');
  const after = yield* apply(ctx, scope, whole, [{ name: 'end', reason, cause, trigger, successorId: null, epoch }]);
  return { session: after.session, already: false };
}

/** The commands that change one session and need nothing else from the store. */
export type PlainCommand = Extract<
  Command,
  { name: 'touch' | 'begin' | 'interrupt' | 'suspend' | 'background' | 'release' | 'compress' | 'title' | 'note' }
>;

/** Applies one plain command to a session; repeated with the same command id it changes nothing. */
export function* command(
  ctx: TxContext,
  args: { context: CommandContext; sessionId: string; command: PlainCommand },
): Tx<SessionWithTurns> {
  const { scope, loaded } = yield* enterSession(ctx, args.context, args.sessionId);
  if (hasApplied(loaded.session, args.context.commandId)) return loaded;
  const { command } = args;
  const needed = command.name === 'suspend' ? 'all' : command.name === 'begin' ? [command.turnId] : [];
  return yield* apply(ctx, scope, yield* withTurns(loaded, needed), [command]);
}

/** The conversation a session belongs to, for its successor. */
export function conversationOf(session: Session): ConversationRef {
  const { key, kind, platform, userId, origin, attached } = session;
  return { key, kind, platform, userId, origin, attached };
}

function startCommand(
  sessionId: string,
  conversation: ConversationRef,
  facts: Partial<Pick<StartCommand, 'parentId' | 'lineage' | 'title' | 'resetOf'>> = {},
): StartCommand {
  const fresh = { parentId: null, lineage: null, title: null, resetOf: null };
  return { name: 'start', sessionId, ...conversation, ...fresh, ...facts };
}

/** The full text of a turn; transitions read only its beginning. */
export function* turnText(_ctx: TxContext, args: { turnId: string }): Tx<string | null> {
  const [whole = null] = yield* selectValues(text, 'SELECT text FROM turns WHERE id = ?', args.turnId);
  return whole;
}
