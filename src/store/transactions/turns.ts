import type { Command, TokenUsage, TurnResult } from '../../lifecycle/commands.ts';
import { hasApplied, isOneShot, type Session, type SessionWithTurns, type Turn } from '../../lifecycle/session.ts';
import {
  integer,
  nullableInteger,
  nullableJson,
  nullableText,
  type RowOf,
  selectValues,
  Table,
  text,
} from '../table.ts';
import { storableText } from '../text.ts';
import { query, type Tx, type TxContext } from '../transaction.ts';
import { apply } from './apply.ts';
import type { TurnReply } from './conversations.ts';
import { type DeliveryToMake, deliveryRows } from './deliveries.ts';
import { appendCommand, type MessageToAppend, messageRows } from './messages.ts';
import { TURN_COLUMNS, TURNS } from './rows.ts';
import { type CommandContext, enterSession, withTurns } from './sessions.ts';
import { moveTurnFiles } from './turn-files.ts';

export interface FinishArgs {
  readonly context: CommandContext;
  readonly sessionId: string;
  readonly turnId: string;
  /** The epoch the turn began at; null for a turn that never began, or for an operator. */
  readonly epoch: number | null;
  readonly result: TurnResult;
  readonly error: string | null;
  /** What the turn added to the transcript and was not appended on the way. */
  readonly messages: readonly MessageToAppend[];
  /** Replies to be sent: rows of the outbox in the same transaction. */
  readonly deliveries: readonly DeliveryToMake[];
}

/** A turn is over: its outcome, the rest of its transcript and its replies, in one transaction; with it a one-shot session. */
export function* finishTurn(ctx: TxContext, args: FinishArgs): Tx<SessionWithTurns> {
  const { scope, loaded: beginning } = yield* enterSession(ctx, args.context, args.sessionId);
  if (hasApplied(beginning.session, args.context.commandId)) return beginning;
  const { turnId, epoch, result } = args;
  const loaded = yield* withTurns(beginning, [turnId]);
  const response = result.response === null ? null : storableText(result.response, 'the response');
  const error = args.error === null ? null : storableText(args.error, 'the error');
  const finish: Command = { name: 'finish', turnId, epoch, ...result, response };
  const commands = [...appendCommand(args.messages, epoch), finish, ...closing(loaded.session)];
  return yield* apply(ctx, scope, loaded, commands, {
    outcome: { turnId, response, model: result.model, usage: result.usage, error },
    rows: () => [
      ...messageRows(ctx, loaded.session, loaded.session.messageCount, args.messages),
      ...deliveryRows(ctx, loaded.session, turnId, args.deliveries),
    ],
  });
}

/** What was made for one request, or for what one program sent, ends with its turn. */
function closing(session: Session): Command[] {
  const reason = isOneShot(session) ? 'api_close' : session.kind === 'webhook' ? 'webhook_complete' : null;
  if (reason === null) return [];
  return [{ name: 'end', reason, trigger: 'api', cause: null, successorId: null, epoch: null }];
}

/**
 * Makes waiting turns part of an older one that waits too: its text becomes all of their texts, and they are over with a
 * response that says so. Turns that do not wait any more are left alone.
 */
export function* joinTurns(
  ctx: TxContext,
  args: { context: CommandContext; sessionId: string; into: string; turnIds: readonly string[]; response: string },
): Tx<SessionWithTurns> {
  const { scope, loaded: beginning } = yield* enterSession(ctx, args.context, args.sessionId);
  if (hasApplied(beginning.session, args.context.commandId)) return beginning;
  const loaded = yield* withTurns(beginning, [args.into, ...args.turnIds]);
  const waits = (id: string): boolean => loaded.turns.some((turn) => turn.id === id && turn.state === 'queued');
  const pieces = args.turnIds.filter((id) => id !== args.into && waits(id));
  if (!waits(args.into) || pieces.length === 0) return loaded;
  const texts: string[] = [];
  for (const id of [args.into, ...pieces]) {
    texts.push(...(yield* selectValues(text, 'SELECT text FROM turns WHERE id = ?', id)));
  }
  yield* query('UPDATE turns SET text = ? WHERE id = ?', storableText(texts.join('\n'), 'the message'), args.into);
  yield* moveTurnFiles(args.into, pieces);
  // The newest piece is what an answer answers: it may be given for longest.
  yield* query(
    'UPDATE turns SET reply = coalesce((SELECT reply FROM turns WHERE id = ?), reply) WHERE id = ?',
    pieces.at(-1) ?? '',
    args.into,
  );
  let after = loaded;
  for (const turnId of pieces) {
    const result = { outcome: 'done', response: args.response, model: null, usage: null } as const;
    after = yield* apply(ctx, scope, after, [{ name: 'finish', turnId, epoch: null, ...result }], {
      outcome: { turnId, response: args.response, model: null, usage: null, error: null },
    });
  }
  return after;
}

/** One turn, finished or not. */
export function* getTurn(_ctx: TxContext, args: { turnId: string }): Tx<Turn | null> {
  return (yield* TURNS.selectOne('WHERE id = ?', args.turnId)) ?? null;
}

const RESULTS = new Table('turns', {
  ...TURN_COLUMNS,
  response: nullableText,
  model: nullableText,
  tokensIn: nullableInteger,
  tokensOut: nullableInteger,
  error: nullableText,
});

/** A turn with all that is kept of it. */
export interface TurnResultRow extends Omit<RowOf<typeof RESULTS>, 'tokensIn' | 'tokensOut'> {
  readonly usage: TokenUsage | null;
}

/** How a turn came out, or how far it is. */
export function* turnResult(_ctx: TxContext, args: { turnId: string }): Tx<TurnResultRow | null> {
  return toResult(yield* RESULTS.selectOne('WHERE id = ?', args.turnId));
}

/** The same by the name of the message on its platform. */
export function* turnByRef(
  ctx: TxContext,
  { originRef, ttlMs }: { originRef: string; ttlMs?: number },
): Tx<TurnResultRow | null> {
  const since = ttlMs === undefined ? 0 : ctx.now - ttlMs;
  return toResult(yield* RESULTS.selectOne('WHERE origin_ref = ? AND created_at >= ?', originRef, since));
}

function toResult(row: RowOf<typeof RESULTS> | undefined): TurnResultRow | null {
  if (row === undefined) return null;
  const { tokensIn, tokensOut, ...turn } = row;
  return { ...turn, usage: tokensIn === null ? null : { input: tokensIn, output: tokensOut ?? 0 } };
}

/**
 * How many turns of a session that people began were answered, up to one of them or in all; 0 when that one was not.
 * A message that was taken into another turn has no answer of its own.
 */
export function* answeredTurns(_ctx: TxContext, args: { sessionId: string; upTo: string | null }): Tx<number> {
  const { sessionId, upTo } = args;
  const [answered = 0] =
    upTo === null
      ? yield* selectValues(integer, COUNT_ANSWERED, sessionId)
      : yield* selectValues(integer, ANSWERED_UP_TO, sessionId, upTo, sessionId);
  return answered;
}

const ANSWERED = "state = 'over' AND outcome = 'done' AND by_actor = 'user' AND started_at IS NOT NULL";
const COUNT_ANSWERED = `SELECT count(*) FROM turns WHERE session_id = ? AND ${ANSWERED}`;
const ANSWERED_UP_TO = `${COUNT_ANSWERED}
  AND (ended_at, id) <= (SELECT ended_at, id FROM turns WHERE id = ? AND session_id = ? AND ${ANSWERED})`;

/** The oldest unfinished turns of a session. */
export function* openTurns(_ctx: TxContext, args: { sessionId: string; limit: number }): Tx<Turn[]> {
  const oldest = "WHERE session_id = ? AND state <> 'over' ORDER BY created_at, id LIMIT ?";
  return yield* TURNS.select(oldest, args.sessionId, args.limit);
}

/**
 * The oldest unfinished turns of the store that may be carried on with: after a restart, or when another gateway died.
 * What waits in a parked session waits for its release, however much it is: it must not hide what is behind it.
 */
export function* unfinishedTurns(_ctx: TxContext, args: { limit: number }): Tx<Turn[]> {
  return yield* TURNS.select(
    `WHERE state <> 'over' AND NOT EXISTS (
       SELECT 1 FROM sessions WHERE sessions.id = turns.session_id AND sessions.state = 'suspended'
         AND sessions.suspend_reason = 'operator'
     ) ORDER BY created_at, id LIMIT ?`,
    args.limit,
  );
}

const INTERRUPTED = new Table('turns', { id: text, sessionId: text });
const STALE = `state <> 'over' AND state = 'cut' AND EXISTS (
  SELECT 1 FROM sessions WHERE sessions.id = turns.session_id AND sessions.resume_at < ?
)`;

/** Turns that were cut longer ago than the resume window: they do not go on by themselves. Of one session, or of all. */
export function* staleTurns(
  ctx: TxContext,
  args: { sessionId: string | null; limit: number },
): Tx<RowOf<typeof INTERRUPTED>[]> {
  const before = ctx.now - ctx.rules.resumeWindowMs;
  if (args.sessionId !== null) {
    return yield* INTERRUPTED.select(`WHERE session_id = ? AND ${STALE} LIMIT ?`, args.sessionId, before, args.limit);
  }
  return yield* INTERRUPTED.select(`WHERE ${STALE} ORDER BY created_at, id LIMIT ?`, before, args.limit);
}

const REPLY = nullableJson<TurnReply>();

/** What was kept of a turn's message so that it can be answered; null for nothing. */
export function* turnReply(_ctx: TxContext, args: { turnId: string }): Tx<TurnReply | null> {
  const [reply = null] = yield* selectValues(REPLY, 'SELECT reply FROM turns WHERE id = ?', args.turnId);
  return reply;
}

/** The same of the newest message of a conversation that has it. */
export function* latestReply(_ctx: TxContext, args: { sessionKey: string }): Tx<TurnReply | null> {
  const [reply = null] = yield* selectValues(
    REPLY,
    `SELECT t.reply FROM turns t JOIN sessions s ON s.id = t.session_id WHERE s.key = ? AND t.reply IS NOT NULL
     ORDER BY t.created_at DESC, t.id DESC LIMIT 1`,
    args.sessionKey,
  );
  return reply;
}

/** The full text of a turn; transitions read only its beginning. */
export function* turnText(_ctx: TxContext, args: { turnId: string }): Tx<string | null> {
  const [whole = null] = yield* selectValues(text, 'SELECT text FROM turns WHERE id = ?', args.turnId);
  return whole;
}
