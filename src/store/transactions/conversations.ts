import { MoiraiError } from '../../errors/moirai-error.ts';
import { arrive } from '../../lifecycle/arrival.ts';
import type { Command, StartCommand } from '../../lifecycle/commands.ts';
import { policyFor } from '../../lifecycle/reset-policy.ts';
import { hasApplied, type Life, type Origin, type Session, type Turn } from '../../lifecycle/session.ts';
import type { Actor, EndCause, EndReason, Lineage, ResetCause, SessionKind, Trigger } from '../../lifecycle/states.ts';
import { storableText } from '../text.ts';
import { type Ask, type Query, queryOne, type Tx, type TxContext, textOf, together } from '../transaction.ts';
import { apply, type Extras } from './apply.ts';
import { appendCommand, messageRows } from './messages.ts';
import { SELECT_TURN, toTurn } from './rows.ts';
import {
  type Desk,
  enter,
  enterKey,
  enterLife,
  type Giver,
  lockKey,
  readingLife,
  readingOpenLife,
} from './sessions.ts';
import { takeUnanswered } from './told.ts';

/** Who talks where: what a session takes over from its conversation when it starts. */
export interface Party {
  readonly key: string;
  readonly kind: SessionKind;
  readonly platform: string;
  readonly userId: string | null;
  readonly origin: Origin;
  readonly attached: boolean;
}

export interface EndFacts {
  readonly reason: EndReason;
  readonly cause: EndCause | null;
  readonly trigger: Trigger;
}

export interface StartArgs {
  readonly giver: Giver;
  readonly sessionId: string;
  readonly party: Party;
  readonly parentId: string | null;
  readonly lineage: Lineage | null;
  readonly title: string | null;
}

/** Starts a session by itself (a batch, a terminal, a child). Repeated with the same id it returns the first one. */
export function* startSession(ctx: TxContext, args: StartArgs): Tx<Session> {
  const desk = yield* enter(ctx, args.giver);
  yield* lockKey(ctx, args.party.key);
  const [known] = yield* together(readingLife(ctx, args.sessionId));
  if (known !== undefined && hasApplied(known.session, args.giver.commandId)) return known.session;
  const { sessionId, parentId, lineage, title } = args;
  const start = startCommand(sessionId, args.party, { parentId, lineage, title });
  const life = known === undefined ? yield* startLife(ctx, desk, start, []) : yield* apply(ctx, desk, known, [start]);
  return life.session;
}

export interface ReceiveArgs {
  readonly giver: Giver;
  readonly party: Party;
  readonly text: string;
  /** Names the message on its platform: received twice, it is one turn. */
  readonly originRef: string | null;
  readonly by: Actor;
  readonly turnId: string;
  /** The id of the session that starts if none can be continued. */
  readonly newSessionId: string;
  /** Of a session that this starts. */
  readonly title?: string;
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
  const { desk, known, life } = yield* enterReceive(ctx, args);
  if (known !== undefined) return known;
  const cause = life === undefined ? null : arrival(ctx, life.session);
  if (life !== undefined && cause === null) {
    const after = yield* enqueue(ctx, desk, args, life, null);
    return answer(after, args, { started: false, ended: null });
  }
  if (life === undefined || cause === null) {
    const start = startCommand(args.newSessionId, args.party, { title: args.title ?? null });
    const after = yield* enqueue(ctx, desk, args, null, start);
    return answer(after, args, { started: true, ended: null });
  }
  const end: EndFacts = { reason: 'auto_reset', cause, trigger: 'message' };
  const start = startCommand(args.newSessionId, args.party, { parentId: life.session.id, lineage: 'reset' });
  const successor = yield* replace(ctx, desk, life, end, start, []);
  const after = yield* enqueue(ctx, desk, args, successor, null);
  return answer(after, args, { started: true, ended: { id: life.session.id, cause } });
}

function arrival(ctx: TxContext, session: Session): ResetCause | null {
  return arrive(session, ctx.now, policyFor(ctx.rules, session.key), ctx.rules.resumeWindowMs);
}

interface Arrived {
  readonly desk: Desk;
  /** The answer, when the message was here before. */
  readonly known: Received | undefined;
  readonly life: Life | undefined;
}

/** `enterKey` for a message: whether it was here before is asked in the same breath. */
function* enterReceive(ctx: TxContext, args: ReceiveArgs): Tx<Arrived> {
  const { desk, life, more } = yield* enterKey(ctx, args.giver, args.party.key, knownTurn(args));
  if (more === undefined) return { desk, life, known: undefined };
  return { desk, life, known: yield* repeated(ctx, args, more) };
}

function knownTurn({ originRef, turnId }: ReceiveArgs): Ask<Turn | undefined> {
  const [column, value] = originRef === null ? ['id', turnId] : ['origin_ref', originRef];
  return {
    queries: [{ sql: `SELECT ${SELECT_TURN} FROM turns WHERE ${column} = ?`, params: [value] }],
    read: ([rows = []]) => (rows[0] === undefined ? undefined : toTurn(rows[0])),
  };
}

function* repeated(ctx: TxContext, args: ReceiveArgs, turn: Turn): Tx<Received | undefined> {
  const [life] = yield* together(readingLife(ctx, turn.sessionId));
  if (life === undefined) return undefined;
  // The same turn id again is the same call again, whose answer was lost: it begins what it began.
  const begun = turn.id === args.turnId && turn.state === 'running' && life.session.owner === args.giver.instance;
  return { session: life.session, turn, begun, started: false, ended: null, duplicate: turn.id !== args.turnId };
}

/** Journals the message as a turn, of a session that it may start, and begins it when the session is free. */
function* enqueue(
  ctx: TxContext,
  desk: Desk,
  args: ReceiveArgs,
  life: Life | null,
  start: StartCommand | null,
): Tx<Life> {
  const text = storableText(args.text, 'the message');
  const owner = life?.session.owner ?? args.giver.instance;
  // What another instance holds, it alone may begin; the message waits for it rather than be refused.
  const free = args.begin && (life?.turns.length ?? 0) === 0 && owner === args.giver.instance;
  const commands: Command[] = [{ name: 'enqueue', turnId: args.turnId, text, by: args.by }];
  if (free) commands.push({ name: 'begin', turnId: args.turnId });
  const extras: Extras = { rows: (after) => [turnRow(turnIn(after, args.turnId), args, text)] };
  if (start !== null) return yield* startLife(ctx, desk, start, commands, extras);
  return yield* apply(ctx, desk, life, commands, extras);
}

/** Starts a session, which knows of what its conversation was told and nobody answered yet; then these commands. */
function* startLife(
  ctx: TxContext,
  desk: Desk,
  start: StartCommand,
  commands: readonly Command[],
  extras: Extras = {},
): Tx<Life> {
  // What dies with its process is nobody's conversation.
  const told = start.attached ? [] : yield* takeUnanswered(ctx, start.key);
  return yield* apply(ctx, desk, null, [start, ...appendCommand(told, null), ...commands], {
    ...extras,
    rows: (after) => {
      const empty = { ...after, session: { ...after.session, messageCount: 0 } };
      return [...messageRows(ctx, empty, told), ...(extras.rows?.(after) ?? [])];
    },
  });
}

function turnRow(turn: Turn, { originRef, party }: ReceiveArgs, text: string): Query {
  const { id, sessionId, by, state, createdAt, startedAt } = turn;
  return {
    sql: `INSERT INTO turns (id, session_id, origin_ref, by_actor, user_id, state, text, created_at, started_at, cuts)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
    params: [id, sessionId, originRef, by, party.userId, state, text, createdAt, startedAt],
  };
}

function turnIn(life: Life, turnId: string): Turn {
  const turn = life.turns.find((candidate) => candidate.id === turnId);
  if (turn === undefined) throw new MoiraiError('internal', `turn ${turnId} was not enqueued`);
  return turn;
}

function answer(life: Life, args: ReceiveArgs, facts: Pick<Received, 'started' | 'ended'>): Received {
  const turn = turnIn(life, args.turnId);
  return { session: life.session, turn, begun: turn.state === 'running', duplicate: false, ...facts };
}

/**
 * Ends one session and starts its successor, in that order and in one transaction. Messages that waited in the old
 * one move on to the new one.
 */
function* replace(
  ctx: TxContext,
  desk: Desk,
  old: Life,
  end: EndFacts,
  start: StartCommand,
  before: readonly Command[],
): Tx<Life> {
  const waiting = old.turns.filter((turn) => turn.state === 'queued');
  const endCommand: Command = { name: 'end', ...end, successorId: start.sessionId, epoch: null };
  yield* apply(ctx, desk, old, [...before, endCommand]);
  const successor = yield* startLife(ctx, desk, start, []);
  if (waiting.length === 0) return successor;
  const turns = waiting.map((turn) => ({ ...turn, sessionId: start.sessionId }));
  // The successor's deadline was computed without the messages it inherits; they hold it.
  return yield* apply(ctx, desk, { session: successor.session, turns }, [{ name: 'touch', by: 'system' }]);
}

/**
 * A session that cannot go on (suspended, overdue, its resume marker stale) while messages wait in it: it ends as if
 * one of them had just arrived, and they move on to a fresh one. Returns null when the session can go on.
 */
export function* rollOver(
  ctx: TxContext,
  args: { giver: Giver; sessionId: string; newSessionId: string },
): Tx<{ session: Session; ended: { id: string; cause: ResetCause } } | null> {
  const { desk, life: old } = yield* enterLife(ctx, args.giver, args.sessionId);
  if (old.session.state === 'ended') return null;
  const cause = arrival(ctx, old.session);
  if (cause === null || !old.turns.some((turn) => turn.state === 'queued')) return null;
  const start = startCommand(args.newSessionId, partyOf(old.session), { parentId: old.session.id, lineage: 'reset' });
  const end: EndFacts = { reason: 'auto_reset', cause, trigger: 'message' };
  const life = yield* replace(ctx, desk, old, end, start, []);
  return { session: life.session, ended: { id: old.session.id, cause } };
}

export interface SlashCommand {
  readonly command: string;
  readonly args: string;
}

export interface ResetArgs {
  readonly giver: Giver;
  readonly party: Party;
  readonly newSessionId: string;
  readonly title: string | null;
  /** Recorded as `command:<name>` of the old session. */
  readonly slash: SlashCommand | null;
}

/** A user asks for a fresh session. Without an open one it only starts one. */
export function* resetSession(ctx: TxContext, args: ResetArgs): Tx<{ session: Session; ended: string | null }> {
  const { desk, life: old } = yield* enterKey(ctx, args.giver, args.party.key);
  if (old !== undefined && old.session.id === args.newSessionId) {
    return { session: old.session, ended: old.session.parentId };
  }
  const note: Command[] = args.slash === null ? [] : [{ name: 'note', ...args.slash }];
  if (old === undefined) {
    const start = startCommand(args.newSessionId, args.party, { title: args.title });
    const life = yield* startLife(ctx, desk, start, note);
    return { session: life.session, ended: null };
  }
  const start = startCommand(args.newSessionId, args.party, {
    parentId: old.session.id,
    lineage: 'reset',
    title: args.title,
    resetOf: old.session.id,
  });
  const end: EndFacts = { reason: 'user_reset', cause: null, trigger: 'command' };
  const life = yield* replace(ctx, desk, old, end, start, note);
  return { session: life.session, ended: old.session.id };
}

export interface ContinueArgs {
  readonly giver: Giver;
  /** The session whose transcript the new one sees. */
  readonly fromId: string;
  readonly lineage: 'resume' | 'branch';
  readonly newSessionId: string;
  readonly title: string | null;
  readonly trigger: Trigger;
  /** Where to continue; null for the conversation it belonged to. */
  readonly party: Party | null;
  readonly slash: SlashCommand | null;
}

/**
 * Resumes or branches: a new session linked to an old one; nothing is reopened. The open session of the conversation
 * ends as `switched` (or `branched`). Resuming a session that is open in that conversation returns it.
 */
export function* continueSession(
  ctx: TxContext,
  args: ContinueArgs,
): Tx<{ session: Session; ended: string | null; created: boolean }> {
  const { desk, life: from } = yield* enterLife(ctx, args.giver, args.fromId);
  const party = args.party ?? partyOf(from.session);
  if (party.key !== from.session.key) yield* lockKey(ctx, party.key);
  const [open] = yield* together(readingOpenLife(ctx, party.key));
  if (open !== undefined && open.session.id === args.newSessionId) {
    return { session: open.session, ended: null, created: true };
  }
  const stays = args.lineage === 'resume' && open?.session.id === from.session.id;
  if (open !== undefined && stays) return { session: open.session, ended: null, created: false };
  const start = startCommand(args.newSessionId, party, {
    parentId: from.session.id,
    lineage: args.lineage,
    title: args.title ?? from.session.title,
  });
  const note: Command[] = args.slash === null ? [] : [{ name: 'note', ...args.slash }];
  if (open === undefined) {
    const life = yield* startLife(ctx, desk, start, note);
    return { session: life.session, ended: null, created: true };
  }
  const reason = args.lineage === 'resume' ? 'switched' : 'branched';
  const life = yield* replace(ctx, desk, open, { reason, cause: null, trigger: args.trigger }, start, note);
  return { session: life.session, ended: open.session.id, created: true };
}

export interface EndArgs extends EndFacts {
  readonly giver: Giver;
  readonly sessionId: string;
  readonly epoch: number | null;
}

/** Ends a session. Ending it twice returns the first end. */
export function* endSession(ctx: TxContext, args: EndArgs): Tx<{ session: Session; already: boolean }> {
  const { desk, life } = yield* enterLife(ctx, args.giver, args.sessionId);
  const already = !hasApplied(life.session, args.giver.commandId);
  if (life.session.state === 'ended') return { session: life.session, already };
  const { reason, cause, trigger, epoch } = args;
  const after = yield* apply(ctx, desk, life, [{ name: 'end', reason, cause, trigger, successorId: null, epoch }]);
  return { session: after.session, already: false };
}

/** The commands that change one session and need nothing else from the store. */
export type PlainCommand = Extract<
  Command,
  { name: 'touch' | 'begin' | 'interrupt' | 'suspend' | 'background' | 'release' | 'compress' | 'title' | 'note' }
>;

/** Applies one plain command to a session; repeated with the same command id it changes nothing. */
export function* command(ctx: TxContext, args: { giver: Giver; sessionId: string; command: PlainCommand }): Tx<Life> {
  const { desk, life } = yield* enterLife(ctx, args.giver, args.sessionId);
  if (hasApplied(life.session, args.giver.commandId)) return life;
  return yield* apply(ctx, desk, life, [args.command]);
}

/** The conversation a session belongs to, for its successor. */
export function partyOf(session: Session): Party {
  const { key, kind, platform, userId, origin, attached } = session;
  return { key, kind, platform, userId, origin, attached };
}

function startCommand(
  sessionId: string,
  party: Party,
  facts: Partial<Pick<StartCommand, 'parentId' | 'lineage' | 'title' | 'resetOf'>> = {},
): StartCommand {
  const fresh = { parentId: null, lineage: null, title: null, resetOf: null };
  return { name: 'start', sessionId, ...party, ...fresh, ...facts };
}

/** The full text of a turn; transitions read only its beginning. */
export function* turnText(_ctx: TxContext, args: { turnId: string }): Tx<string | null> {
  const row = yield* queryOne('SELECT text FROM turns WHERE id = ?', args.turnId);
  return row === undefined ? null : textOf(row, 'text');
}
