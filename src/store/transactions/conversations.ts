import { MoiraiError } from '../../errors/moirai-error.ts';
import { arrive } from '../../lifecycle/arrival.ts';
import type { Command, StartCommand } from '../../lifecycle/commands.ts';
import { policyFor } from '../../lifecycle/reset-policy.ts';
import { isParked, type Session, type SessionWithTurns, type Turn } from '../../lifecycle/session.ts';
import type { Actor, ResetCause } from '../../lifecycle/states.ts';
import { storableText } from '../text.ts';
import { type Ask, batch, type Query, query, type Tx, type TxContext } from '../transaction.ts';
import { apply, type Extras } from './apply.ts';
import { takeUnanswered } from './external-notes.ts';
import { appendCommand, type MessageToAppend, messageRows } from './messages.ts';
import { TURNS } from './rows.ts';
import { type CommandContext, enterKey, sessionQuery, type WriteScope, withTurns } from './sessions.ts';
import { type TurnFile, turnFileRows } from './turn-files.ts';
import { applyKeepingWords } from './turn-words.ts';

/** Who talks where: what a session takes over from its conversation when it starts. */
export type ConversationRef = Pick<Session, 'key' | 'kind' | 'platform' | 'userId' | 'origin' | 'attached'>;

export type EndFacts = Pick<Extract<Command, { name: 'end' }>, 'reason' | 'cause' | 'trigger'>;

export interface ReceiveArgs {
  readonly context: CommandContext;
  readonly conversation: ConversationRef;
  readonly text: string;
  /** Names the message on its platform: received twice, it is one turn. */
  readonly originRef: string | null;
  /** For so long; without it for ever. */
  readonly refTtlMs?: number | undefined;
  readonly by: Actor;
  /** How the person who wrote it is called, from outside; who it is, the conversation says. */
  readonly userName?: string | null | undefined;
  readonly turnId: string;
  /** The id of the session that starts if none can be continued. */
  readonly newSessionId: string;
  /** Of a session that this starts. */
  readonly title?: string;
  /** Rows that its turn finds in the transcript: what the client says was said before, and what it asks for. */
  readonly before?: readonly MessageToAppend[] | undefined;
  /** What came with it, fetched in its turn. */
  readonly files?: readonly TurnFile[] | undefined;
  /** The message, as far as an answer to it needs it; in its platform's own words. */
  readonly reply?: TurnReply | undefined;
  /** Begin the turn in the same transaction when nothing else waits or runs. */
  readonly begin: boolean;
}

/** What is kept of a message so that it can be answered. */
export type TurnReply = Readonly<Record<string, unknown>>;

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
  // Whether the message was here before is asked in the same breath.
  const { scope, loaded, more: sent } = yield* enterKey(ctx, args.context, args.conversation.key, knownTurn(args));
  const known = sent === undefined ? undefined : yield* repeated(ctx, args, sent);
  if (known !== undefined) return known;
  const cause = loaded === undefined ? null : arrival(ctx, loaded.session);
  if (loaded !== undefined && cause === null) {
    const after = yield* enqueue(ctx, scope, args, loaded, null);
    return answer(after, args, { started: false, ended: null });
  }
  if (loaded === undefined || cause === null) {
    // What was to be done ended before it was said: with its parent, which nothing new may outlive.
    if (args.conversation.kind === 'child') throw new MoiraiError('session_ended', 'the child has ended already');
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

export function arrival(ctx: TxContext, session: Session): ResetCause | null {
  return arrive(session, ctx.now, policyFor(ctx.rules, session.key), ctx.rules.resumeWindowMs);
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
  // What waits for an operator begins when they release it.
  const isFree = loaded === null || (loaded.turns.length === 0 && !isParked(loaded.session));
  const free = args.begin && isFree && owner === args.context.instanceId;
  const { before = [] } = args;
  const commands: Command[] = [
    ...appendCommand(before, null),
    {
      name: 'enqueue',
      turnId: args.turnId,
      text,
      by: args.by,
      userId: args.conversation.userId,
      userName: args.userName ?? null,
      origin: args.conversation.origin,
    },
  ];
  if (free) commands.push({ name: 'begin', turnId: args.turnId });
  const extras: Extras = {
    rows: (after) => [
      ...messageRows(ctx, after.session, after.session.messageCount - before.length, before),
      turnRow(turnIn(after, args.turnId), args, text),
      ...turnFileRows(args.turnId, args.files ?? []),
    ],
  };
  if (start !== null) return yield* applyStart(ctx, scope, start, commands, extras);
  return yield* apply(ctx, scope, loaded, commands, extras);
}

/** Starts a session, which knows of what its conversation was told and nobody answered yet; then these commands. */
export function* applyStart(
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
    rows: (after) => [...messageRows(ctx, after.session, 0, externalNotes), ...(extras.rows?.(after) ?? [])],
  });
}

function turnRow(turn: Turn, { originRef, reply }: ReceiveArgs, text: string): Query {
  const { id, sessionId, by, userId, userName, state, createdAt, startedAt } = turn;
  return {
    sql: `INSERT INTO turns
        (id, session_id, origin_ref, by_actor, user_id, user_name, state, text, created_at, started_at, cuts, reply)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`,
    params: [
      ...[id, sessionId, originRef, by, userId, userName, state, text, createdAt, startedAt],
      reply === undefined ? null : JSON.stringify(reply),
    ],
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
export function* replace(
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
  yield* applyKeepingWords(ctx, scope, old, endCommand, before);
  const successor = yield* applyStart(ctx, scope, start, []);
  if (waiting.length === 0) return successor;
  const turns = waiting.map((turn) => ({ ...turn, sessionId: start.sessionId }));
  // The successor's deadline was computed without the messages it inherits; they hold it.
  return yield* apply(ctx, scope, { session: successor.session, turns }, [{ name: 'touch', by: 'system' }]);
}

/** The conversation a session belongs to, for its successor. */
export function conversationOf(session: Session): ConversationRef {
  const { key, kind, platform, userId, origin, attached } = session;
  return { key, kind, platform, userId, origin, attached };
}

export function startCommand(
  sessionId: string,
  conversation: ConversationRef,
  facts: Partial<Pick<StartCommand, 'parentId' | 'lineage' | 'title' | 'resetOf'>> = {},
): StartCommand {
  const fresh = { parentId: null, lineage: null, title: null, resetOf: null };
  return { name: 'start', sessionId, ...conversation, ...fresh, ...facts };
}
