import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Within } from '../../lifecycle/namespace.ts';
import type { Session } from '../../lifecycle/session.ts';
import { pageSize } from '../limits.ts';
import {
  integer,
  isUnreadable,
  json,
  nullableInteger,
  nullableText,
  type RowOf,
  selectValues,
  Table,
  text,
} from '../table.ts';
import { type Param, placeholders, type Tx, type TxContext } from '../transaction.ts';
import { SESSIONS } from './rows.ts';

/** Gives every committed event its public number. Run before each read of the log, so that readers see their writes. */
export function* sequenceEvents(ctx: TxContext): Tx<void> {
  while (yield* ctx.dialect.sequenceEvents(SEQUENCED_AT_ONCE)) {
    // A log that nobody has read for long is numbered in pieces: no statement takes longer than the next one.
  }
}

const SEQUENCED_AT_ONCE = 5000;

/** Read with the column that `dialect.seqColumn` names as its number. */
const EVENTS = new Table('events', { seq: integer, event: json<MoiraiEvent>() });

export type SequencedEvent = RowOf<typeof EVENTS>;

const isReadable = ({ event }: SequencedEvent): boolean => !isUnreadable(event);

export interface EventFilter {
  readonly after: number;
  readonly limit: number;
  /** Exact types or `prefix:*`; empty for all. */
  readonly types: readonly string[];
  readonly sessionId: string | null;
  /** Only of these conversations; of all unless given. */
  readonly within?: Within;
}

/** From its row, or from the log, which outlives the row and may have lost its beginning. The session's id, three times. */
const KEY_OF_SESSION = `coalesce((SELECT key FROM sessions WHERE id = ?),
  (SELECT session_key FROM events WHERE session_id = ? AND type = 'session:start'),
  (SELECT session_key FROM events WHERE session_id = ? AND type = 'session:end'))`;

/** The conversation of a session that is there, or was; null for one that never was. */
export function* keyOfSession(id: string): Tx<string | null> {
  const [key = null] = yield* selectValues(nullableText, `SELECT ${KEY_OF_SESSION}`, id, id, id);
  return key;
}

/**
 * Events after a public number, in commit order: a reader that follows the numbers misses none. (Within a conversation
 * the order of `no` is that of the public numbers.)
 */
export function* listEvents(ctx: TxContext, args: EventFilter): Tx<{ events: SequencedEvent[]; next: number }> {
  yield* sequenceEvents(ctx);
  const seq = ctx.dialect.seqColumn;
  const where = [`${seq} > ?`];
  const params: Param[] = [args.after];
  if (args.sessionId !== null) {
    // Events are indexed by conversation: its key narrows the search to one conversation's log.
    where.push(`session_key = ${KEY_OF_SESSION}`, 'session_id = ?');
    params.push(args.sessionId, args.sessionId, args.sessionId, args.sessionId);
  }
  for (const filter of [typeFilter(args.types), withinFilter('session_key', args.within)]) {
    if (filter === null) continue;
    where.push(filter.sql);
    params.push(...filter.params);
  }
  const limit = pageSize(args.limit);
  const events = yield* EVENTS.selectAs(
    `SELECT ${seq} AS seq, body FROM events WHERE ${where.join(' AND ')} ORDER BY ${args.sessionId === null ? seq : 'no'} LIMIT ?`,
    ...params,
    limit,
  );
  return { events: events.filter(isReadable), next: events.at(-1)?.seq ?? args.after };
}

/** The newest events of one session, oldest first. */
export function* lastEvents(ctx: TxContext, args: { sessionId: string; limit: number }): Tx<SequencedEvent[]> {
  yield* sequenceEvents(ctx);
  // By the conversation, which has an index in the order of the log.
  const events = yield* EVENTS.selectAs(
    `SELECT ${ctx.dialect.seqColumn} AS seq, body FROM events
     WHERE session_key = ${KEY_OF_SESSION} AND session_id = ? ORDER BY no DESC LIMIT ?`,
    ...[args.sessionId, args.sessionId, args.sessionId, args.sessionId],
    pageSize(args.limit),
  );
  return events.filter(isReadable).reverse();
}

interface Filter {
  readonly sql: string;
  readonly params: readonly Param[];
}

/** Text compares by code point on both engines, so that a beginning is a range of the index. */
function withinFilter(column: string, within: Within = null): Filter | null {
  if (within === null) return null;
  const ranges = within.map(() => `(${column} >= ? AND ${column} < ?)`);
  return { sql: `(${ranges.join(' OR ')})`, params: within.flatMap((prefix) => [prefix, `${prefix}\uFFFF`]) };
}

function typeFilter(types: readonly string[]): Filter | null {
  if (types.length === 0 || types.includes('*')) return null;
  const parts = types.map((type) => (type.endsWith(':*') ? "type LIKE ? ESCAPE '!'" : 'type = ?'));
  const params = types.map((type) => (type.endsWith(':*') ? `${escapeLike(type.slice(0, -1))}%` : type));
  return { sql: `(${parts.join(' OR ')})`, params };
}

function escapeLike(text: string): string {
  return text.replace(/[!%_]/g, '!$&');
}

/** The number of the newest event: a snapshot read in the same transaction is followed from here. */
export function* lastSeq(ctx: TxContext, _args: Record<never, never>): Tx<number> {
  yield* sequenceEvents(ctx);
  const [last] = yield* selectValues(nullableInteger, `SELECT max(${ctx.dialect.seqColumn}) FROM events`);
  return last ?? 0;
}

const POSITIONS = new Table('subscribers', { name: text, first: nullableInteger });

/**
 * How far each subscriber is that has something undelivered: every event up to this number has been delivered, or given
 * up. Who is not in the answer has had everything.
 */
export function* subscriberPositions(ctx: TxContext, _args: Record<never, never>): Tx<Record<string, number>> {
  yield* sequenceEvents(ctx);
  const seq = ctx.dialect.seqColumn;
  const rows = yield* POSITIONS.selectAs(
    `SELECT s.name, min((SELECT ${seq} FROM events e
       WHERE e.session_key = l.key AND e.no >= l.next_no AND e.no <= l.last_no
       ORDER BY e.no LIMIT 1)) AS first
     FROM subscribers s JOIN lanes l ON l.queue = 'events/' || s.name GROUP BY s.name`,
  );
  const positions: Record<string, number> = {};
  for (const { name, first } of rows) if (first !== null) positions[name] = first - 1;
  return positions;
}

/** One session by its id. */
export function* getSession(_ctx: TxContext, args: { sessionId: string }): Tx<Session | null> {
  return (yield* SESSIONS.selectOne('WHERE id = ?', args.sessionId)) ?? null;
}

/** The open session of a conversation. */
export function* openSession(_ctx: TxContext, args: { key: string }): Tx<Session | null> {
  return (yield* SESSIONS.selectOne("WHERE key = ? AND state <> 'ended'", args.key)) ?? null;
}

/** One session by its id or any unique beginning of it. */
export function* findSession(_ctx: TxContext, args: { idOrPrefix: string; within?: Within }): Tx<Session> {
  const prefix = args.idOrPrefix;
  const filter = withinFilter('key', args.within);
  const [first, second] = yield* SESSIONS.select(
    `WHERE id >= ? AND id < ? ${filter === null ? '' : `AND ${filter.sql}`} ORDER BY id LIMIT 2`,
    prefix,
    `${prefix}\uFFFF`,
    ...(filter?.params ?? []),
  );
  if (first === undefined || prefix === '') throw new MoiraiError('session_not_found', `no session "${prefix}"`);
  if (second !== undefined && first.id !== prefix) {
    throw new MoiraiError('session_ambiguous', `more than one session begins with "${prefix}"`);
  }
  return first;
}

export interface SessionFilter {
  readonly states: readonly string[];
  readonly kinds: readonly string[];
  readonly platforms: readonly string[];
  readonly reasons: readonly string[];
  readonly key: string | null;
  /** Another key that will do. */
  readonly orKey?: string | null;
  readonly user: string | null;
  /** Part of the title or the id. */
  readonly text: string | null;
  /** Started at or after. */
  readonly since: number | null;
  readonly limit: number;
  readonly cursor: string | null;
  /** Only of these conversations; of all unless given. */
  readonly within?: Within;
}

/** A page of sessions, newest start first. */
export function* listSessions(_ctx: TxContext, args: SessionFilter): Tx<{ sessions: Session[]; next: string | null }> {
  const where: string[] = ['1 = 1'];
  const params: Param[] = [];
  const add = (sql: string, ...values: Param[]): void => {
    where.push(sql);
    params.push(...values);
  };
  const oneOf = (column: string, values: readonly string[]): void => {
    if (values.length > 0) add(`${column} IN (${placeholders(values.length)})`, ...values);
  };
  oneOf('state', args.states);
  oneOf('kind', args.kinds);
  oneOf('platform', args.platforms);
  oneOf('end_reason', args.reasons);
  if (args.key !== null) add('key IN (?, ?)', args.key, args.orKey ?? args.key);
  const within = withinFilter('key', args.within);
  if (within !== null) add(within.sql, ...within.params);
  if (args.user !== null) add('user_id = ?', args.user);
  if (args.text !== null) {
    // Both engines fold the case of ASCII only, so that is all that may be folded here.
    const like = `%${escapeLike(args.text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()))}%`;
    add("(lower(coalesce(title, '')) LIKE ? ESCAPE '!' OR lower(id) LIKE ? ESCAPE '!')", like, like);
  }
  if (args.since !== null) add('started_at >= ?', args.since);
  if (args.cursor !== null) {
    const { at, id } = parseCursor(args.cursor);
    add('(started_at < ? OR (started_at = ? AND id < ?))', at, at, id);
  }
  const limit = pageSize(args.limit);
  const found = yield* SESSIONS.select(
    `WHERE ${where.join(' AND ')} ORDER BY started_at DESC, id DESC LIMIT ?`,
    ...params,
    limit + 1,
  );
  const sessions = found.slice(0, limit);
  const last = sessions.at(-1);
  return { sessions, next: found.length > limit && last !== undefined ? `${last.startedAt}_${last.id}` : null };
}

function parseCursor(cursor: string): { at: number; id: string } {
  const match = /^(\d{1,15})_(.+)$/.exec(cursor);
  if (match === null) throw new MoiraiError('bad_input', `"${cursor}" is not a cursor of this listing`);
  return { at: Number(match[1]), id: match[2] ?? '' };
}

export interface Stats {
  readonly total: number;
  /** Everything not ended. */
  readonly open: number;
  readonly openOwned: number;
  /** Attached sessions without a live owner, and turns whose owner is dead: the leak that must be 0. */
  readonly openUnowned: number;
  readonly ended: Readonly<Record<string, number>>;
}

const END_REASONS = new Table('sessions', { endReason: nullableText, sessions: integer });

export function* stats(ctx: TxContext, _args: Record<never, never>): Tx<Stats> {
  const groups = yield* END_REASONS.selectAs(
    'SELECT end_reason, count(*) FROM sessions GROUP BY end_reason ORDER BY end_reason',
  );
  const [openUnowned = 0] = yield* selectValues(
    integer,
    `SELECT count(*) FROM sessions s LEFT JOIN instances i ON i.id = s.owner
     WHERE s.state <> 'ended' AND (s.attached = 1 OR s.owner IS NOT NULL)
       AND (i.id IS NULL OR i.state = 'dead' OR i.lease_until <= ?)`,
    ctx.leaseNow,
  );
  const ended: Record<string, number> = {};
  let open = 0;
  for (const { endReason, sessions } of groups) {
    if (endReason === null) open = sessions;
    else ended[endReason] = sessions;
  }
  const total = Object.values(ended).reduce((sum, n) => sum + n, open);
  return { total, open, openOwned: open - openUnowned, openUnowned, ended };
}
