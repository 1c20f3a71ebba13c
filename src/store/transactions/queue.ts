import {
  flag,
  integer,
  nullableInteger,
  nullableText,
  type RowOf,
  selectedAs,
  selectValues,
  Table,
  text,
} from '../table.ts';
import { type Query, query, type Tx, type TxContext } from '../transaction.ts';
import type { CommandContext } from './sessions.ts';

/*
 * The queue: everything that is claimed, done, retried and settled. Work waits in lanes, one per key of a queue. A lane
 * is claimed as a whole, with a token, by an instance with a live lease; so its work is done in order, by one process at
 * a time. Whoever settles shows the token. A claim ends when it is settled, or when it is released: by the reaper because
 * its instance is dead, or by `reconcile` because its instance does not know of it.
 *
 * What the work is, its owner knows: the events of a conversation for one subscriber, the replies to a conversation, the
 * next tick of a job. A lane exists while there is some.
 */

const LANES = new Table('lanes', {
  queue: text,
  key: text,
  /** Where the work begins and ends, in its owner's numbers; 0 where the owner has none. */
  nextNo: integer,
  lastNo: integer,
  /** Refused attempts of the first piece of work. */
  attempts: integer,
  /** How often its receiver could not be reached: waited for, not counted. */
  waits: integer,
  /** A claim was released without being settled: the first piece of work may have been done. */
  interrupted: { ...flag, decode: (param) => param !== 0 },
  /** How often that was in a row, where it is counted: see `oneSuspectAtATime`. */
  deaths: selectedAs('interrupted', integer),
  error: nullableText,
});

type Lane = RowOf<typeof LANES>;

/** Names a claim of a lane. */
export interface LaneClaim {
  readonly queue: string;
  readonly key: string;
  readonly token: string;
}

/** A lane that was claimed, as it was then. */
export type ClaimedLane = Lane & LaneClaim;

export interface ClaimRequest {
  readonly context: CommandContext;
  readonly queue: string;
  /**
   * Unique per claim. A claim whose answer was lost is repeated with the same token, marked `again`, and returns the
   * same lanes.
   */
  readonly token: string;
  readonly again: boolean;
  readonly limit: number;
  /** Lanes that failed before may take at most this many places, so that they never crowd out the others. */
  readonly retries: number;
}

/** Due without looking at a clock: one that was set back must not hold up what is ready. */
export const AT_ONCE = 0;
/** A lane due later than any retry puts it was timed by a clock that has been set back since: it is due now. */
const LONGEST_BACKOFF_MS = 600_000;

const FREE = 'WHERE queue = ? AND token IS NULL AND';

/** What a claim returned. */
export interface Claimed<L = ClaimedLane> {
  readonly lanes: L[];
  /** When the next lane of the queue is due; not positive when there are more now; null for none. */
  readonly nextDueInMs: number | null;
}

/**
 * Claims due lanes of a queue that nobody holds. Its cost does not depend on how many wait: each statement reads the
 * beginning of one range of an index. The caller has entered with `request.context`. `timed` lanes are due at the time
 * they say, however far away; others wait for a retry.
 */
export function* claimLanes(ctx: TxContext, request: ClaimRequest, timed: boolean): Tx<Claimed> {
  const { queue, limit } = request;
  const own = request.again ? yield* claimedBefore(request) : [];
  const [fresh = [], ...waited] = (yield dueLanes(ctx, request, timed)).map((rows) => LANES.rows(rows));
  const room = Math.max(0, Math.min(limit - fresh.length, request.retries));
  const claimed = [...fresh, ...waited.flat().slice(0, room)];
  if (claimed.length > 0) {
    yield* query(
      `UPDATE lanes SET token = ?, claimed_by = ? WHERE queue = ? AND key IN (${ctx.dialect.listed})`,
      request.token,
      request.context.instanceId,
      queue,
      JSON.stringify(claimed.map(({ key }) => key)),
    );
  }
  const next = 'SELECT min(due_at) FROM lanes WHERE queue = ? AND token IS NULL';
  const [at = null] = yield* selectValues(nullableInteger, next, queue);
  const lanes = [...own, ...claimed].map((lane) => ({ ...lane, token: request.token }));
  return { lanes, nextDueInMs: at === null ? null : at - ctx.now };
}

function claimedBefore({ context, queue, token }: ClaimRequest): Tx<Lane[]> {
  return LANES.select('WHERE claimed_by = ? AND queue = ? AND token = ?', context.instanceId, queue, token);
}

/**
 * Lanes that are due at once; those whose time has come, the longest due first; and those that a clock put too far into
 * the future. One round trip reads all three, though there may not be room for all of them.
 */
function dueLanes(ctx: TxContext, { queue, limit, retries }: ClaimRequest, timed: boolean): Query[] {
  const { skipLocked } = ctx.dialect;
  const most = Math.min(limit, retries);
  const order = `ORDER BY due_at LIMIT ? ${skipLocked}`;
  const due = [
    LANES.query(`${FREE} due_at = 0 ORDER BY next_no LIMIT ? ${skipLocked}`, queue, limit),
    LANES.query(`${FREE} due_at > 0 AND due_at <= ? ${order}`, queue, ctx.now, most),
  ];
  if (!timed) due.push(LANES.query(`${FREE} due_at > ? ${order}`, queue, ctx.now + LONGEST_BACKOFF_MS, most));
  return due;
}

/** What a settled lane is afterwards. */
export interface SettledLane {
  readonly nextNo: number;
  readonly dueAt: number;
  readonly attempts: number;
  readonly waits: number;
  readonly error: string | null;
  /** Its first piece of work was done, or given up: what an interrupted claim left open is settled with it. */
  readonly done: boolean;
  /** It may have been done, and nobody can say: as if the claim had been interrupted. */
  readonly uncertain?: boolean;
}

/** A lane whose first piece of work was done: the next one starts with a clean record. */
export function afterSuccess(nextNo: number): SettledLane {
  return { nextNo, dueAt: AT_ONCE, attempts: 0, waits: 0, error: null, done: true };
}

const CHANGES = `next_no = ?, due_at = ?, attempts = ?, waits = ?, error = ?,
  interrupted = CASE WHEN interrupted = 0 AND CAST(? AS INTEGER) = 0 THEN 0 ELSE CAST(? AS INTEGER) END`;
const CLAIMED = 'WHERE queue = ? AND key = ? AND token = ? RETURNING last_no';
const SETTLE = `UPDATE lanes SET ${CHANGES}, token = NULL, claimed_by = NULL ${CLAIMED}`;
const ADVANCE = `UPDATE lanes SET ${CHANGES} ${CLAIMED}`;

/**
 * Gives a claimed lane back; a worker of its queue looks for its next piece of work, unless there is none up to its last
 * number. Undefined when the claim was no longer the caller's: then nothing has changed.
 */
export function* settleLane(ctx: TxContext, claim: LaneClaim, after: SettledLane): Tx<{ lastNo: number } | undefined> {
  const settled = yield* write(SETTLE, claim, after);
  if (settled !== undefined && (!after.done || settled.lastNo >= after.nextNo)) ctx.effects.queues.add(claim.queue);
  return settled;
}

/** The same while the claim goes on with the next piece of work of the lane. */
export function advanceLane(claim: LaneClaim, after: SettledLane): Tx<{ lastNo: number } | undefined> {
  return write(ADVANCE, claim, after);
}

function* write(sql: string, claim: LaneClaim, after: SettledLane): Tx<{ lastNo: number } | undefined> {
  const { nextNo, dueAt, attempts, waits, error } = after;
  const kept = after.done ? 0 : 1;
  const changes = [nextNo, dueAt, attempts, waits, error, after.uncertain ? 1 : 0, kept];
  const [lastNo] = yield* selectValues(integer, sql, ...changes, claim.queue, claim.key, claim.token);
  return lastNo === undefined ? undefined : { lastNo };
}

/** Whether a claim still holds; locks the lane for the rest of the transaction. */
export function* holdsClaim(ctx: TxContext, { queue, key, token }: LaneClaim): Tx<boolean> {
  const sql = `SELECT key FROM lanes WHERE queue = ? AND key = ? AND token = ? ${ctx.dialect.forUpdate}`;
  return (yield* query(sql, queue, key, token)).length > 0;
}

const INSERT_LANE = `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted)
  VALUES (?, ?, ?, ?, ?, 0, 0, 0) ON CONFLICT (queue, key)`;
const OPEN_LANE = `${INSERT_LANE} DO NOTHING`;
const SCHEDULE_LANE = `${INSERT_LANE} DO UPDATE SET next_no = excluded.next_no, last_no = excluded.last_no,
  due_at = excluded.due_at, attempts = 0, waits = 0, interrupted = 0, token = NULL, claimed_by = NULL, error = NULL`;

/**
 * Puts a lane into a queue, due at once, for work that has no numbers of its own: lanes that wait longest go first. One
 * that is there keeps its place, its claim and its backoff.
 */
export function openLane(ctx: TxContext, queue: string, key: string): Query {
  ctx.effects.queues.add(queue);
  return { sql: OPEN_LANE, params: [queue, key, ctx.now, ctx.now, AT_ONCE] };
}

/** Makes a lane due at a time, which is also its number; whoever has claimed it for another time loses the claim. */
export function scheduleLane(ctx: TxContext, queue: string, key: string, at: number): Query {
  ctx.effects.queues.add(queue);
  return { sql: SCHEDULE_LANE, params: [queue, key, at, at, at] };
}

export function removeLane(queue: string, key: string): Query {
  return { sql: 'DELETE FROM lanes WHERE queue = ? AND key = ?', params: [queue, key] };
}

const RELEASE = `UPDATE lanes SET token = NULL, claimed_by = NULL,
  interrupted = CASE WHEN interrupted = 0 THEN 1 ELSE interrupted END WHERE claimed_by = ?`;

/** Frees the claims of an instance that is dead: its work is due again as it was. */
export function* releaseClaims(instanceId: string): Tx<void> {
  yield* query(RELEASE, instanceId);
}

/** The same for one that leaves in order: that is nobody's fault. */
export function* returnClaims(instanceId: string): Tx<void> {
  yield* query('UPDATE lanes SET token = NULL, claimed_by = NULL, interrupted = 1 WHERE claimed_by = ?', instanceId);
}

/** From so many deaths in a row on, the next must show which lane it was. */
const SUSPECT_FROM = 2;

/**
 * Counts, before anything is done, that lanes are taken again whose last claim ended with the death of its process. Of
 * those with which processes died again and again, one is taken at a time: the others stay free, so that a lane that
 * kills its process is found and its neighbours are not taken for it.
 */
export function* oneSuspectAtATime(request: ClaimRequest, lanes: readonly ClaimedLane[]): Tx<ClaimedLane[]> {
  const { queue, token, context } = request;
  const suspects = lanes.filter(({ deaths }) => deaths >= SUSPECT_FROM);
  const [first, ...others] = suspects.toSorted((a, b) => b.deaths - a.deaths);
  const busy =
    first !== undefined &&
    (yield* query(
      'SELECT key FROM lanes WHERE claimed_by = ? AND queue = ? AND token <> ? AND interrupted > ?',
      context.instanceId,
      queue,
      token,
      SUSPECT_FROM,
    )).length > 0;
  const left = new Set((busy ? [first, ...others] : others).map((lane) => lane?.key));
  const kept = lanes.filter(({ key }) => !left.has(key));
  const claimed = 'WHERE queue = ? AND key = ? AND token = ?';
  const queries = lanes.flatMap(({ key, deaths }) => {
    if (left.has(key))
      return [{ sql: `UPDATE lanes SET token = NULL, claimed_by = NULL ${claimed}`, params: [queue, key, token] }];
    if (deaths === 0) return [];
    return [{ sql: `UPDATE lanes SET interrupted = interrupted + 1 ${claimed}`, params: [queue, key, token] }];
  });
  if (queries.length > 0) yield queries;
  return kept;
}

/** Frees claims whose instance lives and does not know of them: the answer to the claim was lost. */
export function* releaseStrays(ctx: TxContext, instanceId: string, strays: readonly LaneClaim[]): Tx<void> {
  if (strays.length === 0) return;
  const free = `${RELEASE} AND queue = ? AND key = ? AND token = ?`;
  for (const { queue } of strays) ctx.effects.queues.add(queue);
  yield strays.map(({ queue, key, token }) => ({ sql: free, params: [instanceId, queue, key, token] }));
}

const CLAIMS = new Table('lanes', { queue: text, key: text, token: text });

/** The claims that the rows say an instance holds. */
export function claimsOf(instanceId: string): Tx<LaneClaim[]> {
  return CLAIMS.select('WHERE claimed_by = ? ORDER BY queue, key', instanceId);
}
