import { MoiraiError } from '../../errors/moirai-error.ts';
import { assertPattern, type MoiraiEvent } from '../../lifecycle/events.ts';
import { storableText } from '../text.ts';
import {
  nullableNumber,
  nullableText,
  numberOf,
  query,
  queryOne,
  type Row,
  type Tx,
  type TxContext,
  textOf,
} from '../transaction.ts';
import { sequenceEvents } from './reading.ts';
import { listens, NO_KEY, record, type Subscriber } from './record.ts';
import { type CommandContext, enter, lockKey, patternsOf } from './sessions.ts';

/** Due without looking at a clock: one that was set back must not hold up what is ready. */
const AT_ONCE = 0;
/** A lane due later than any retry would put it was timed by a clock that has been set back since: it is due now. */
const LONGEST_BACKOFF_MS = 600_000;

/** Where a new subscriber begins: with what happens next, with the open sessions' own events, or with everything. */
export type SubscribeFrom = 'now' | 'open' | 'start';

/**
 * Registers a subscriber, or changes what it listens to. From then on every matching event has a lane for it, written
 * with the event: between the snapshot and the tail there is no gap and no duplicate.
 */
export function* subscribe(
  ctx: TxContext,
  args: { name: string; patterns: readonly string[]; from: SubscribeFrom },
): Tx<{ created: boolean }> {
  for (const pattern of args.patterns) assertPattern(pattern);
  if (args.patterns.length === 0) throw new MoiraiError('bad_input', `subscriber ${args.name} listens to nothing`);
  const patterns = JSON.stringify(args.patterns);
  yield* oneRegistrationAtATime(ctx);
  const known = yield* queryOne('SELECT patterns FROM subscribers WHERE name = ?', args.name);
  // Every process that boots registers what is registered already: it must not stop all writers for that.
  if (known !== undefined && textOf(known, 'patterns') === patterns) return { created: false };
  yield* holdWritersBack(ctx);
  if (known !== undefined) {
    yield* query('UPDATE subscribers SET patterns = ? WHERE name = ?', patterns, args.name);
    return { created: false };
  }
  yield* query('INSERT INTO subscribers (name, patterns, created_at) VALUES (?, ?, ?)', args.name, patterns, ctx.now);
  if (args.from !== 'now') yield* openLanesFrom(ctx, args.name, args.from);
  return { created: true };
}

/** Two that have read the table and both want it alone would wait for each other. */
function* oneRegistrationAtATime(ctx: TxContext): Tx<void> {
  if (ctx.dialect.name !== 'postgres') return;
  yield* query("SELECT pg_advisory_xact_lock(hashtextextended('moirai:subscribe', 1))");
}

/** Every writer has read the subscribers: the lock waits for those in flight and keeps the next ones out. */
function* holdWritersBack(ctx: TxContext): Tx<void> {
  if (ctx.dialect.name === 'postgres') yield* query('LOCK TABLE subscribers IN ACCESS EXCLUSIVE MODE');
}

function* openLanesFrom(ctx: TxContext, name: string, from: 'open' | 'start'): Tx<void> {
  const first =
    from === 'start'
      ? 'SELECT session_key, min(no) AS first_no, max(no) AS last_no FROM events GROUP BY session_key'
      : `SELECT s.key AS session_key, e.no AS first_no,
           (SELECT max(no) FROM events WHERE session_key = s.key) AS last_no
         FROM sessions s JOIN events e ON e.session_id = s.id AND e.type = 'session:start' WHERE s.state <> 'ended'`;
  yield* query(
    `INSERT INTO lanes (subscriber, session_key, next_no, last_no, due_at, attempts, waits)
     SELECT CAST(? AS TEXT), session_key, first_no, last_no, 0, 0, 0
     FROM (${first}) history`,
    name,
  );
  ctx.effects.subscribers.add(name);
}

/** Removes a subscriber with everything it has not received. */
export function* unsubscribe(ctx: TxContext, args: { name: string }): Tx<void> {
  yield* oneRegistrationAtATime(ctx);
  yield* holdWritersBack(ctx);
  yield* query('DELETE FROM subscribers WHERE name = ?', args.name);
  yield* query('DELETE FROM lanes WHERE subscriber = ?', args.name);
  yield* query('DELETE FROM dead_letters WHERE subscriber = ?', args.name);
}

export interface LaneEvent {
  readonly no: number;
  readonly event: MoiraiEvent;
  /** It was dead and is being replayed. */
  readonly replay: boolean;
}

/** A conversation's undelivered events for one subscriber, in order, held by who has the token. */
export interface ClaimedLane {
  readonly subscriber: string;
  readonly key: string;
  readonly token: string;
  readonly attempts: number;
  readonly waits: number;
  readonly events: readonly LaneEvent[];
  /** The last number this claim covers, matching or not: acknowledging it moves the lane past it. */
  readonly upTo: number;
}

export interface ClaimArgs {
  readonly context: CommandContext;
  readonly subscriber: string;
  /**
   * Unique per claim: a late acknowledgement with an older one is ignored. A claim whose answer was lost is repeated
   * with the same one and gets the same lanes.
   */
  readonly token: string;
  readonly lanes: number;
  /** Lanes that failed before may take at most this many of them, so that fresh ones are never crowded out. */
  readonly retries: number;
  readonly eventsPerLane: number;
  readonly claimMs: number;
}

/** Takes due lanes of a subscriber. One claim per lane at a time, so its events go out in order. */
export function* claimLanes(ctx: TxContext, args: ClaimArgs): Tx<{ lanes: ClaimedLane[]; nextDueInMs: number | null }> {
  const scope = yield* enter(ctx, args.context);
  const subscriber = scope.subscribers.find((candidate) => candidate.name === args.subscriber);
  if (subscriber === undefined) return { lanes: [], nextDueInMs: null };
  const lanes: ClaimedLane[] = [];
  for (const row of yield* dueLanes(ctx, args)) {
    yield* query(
      'UPDATE lanes SET token = ?, claimed_by = ?, claimed_until = ? WHERE subscriber = ? AND session_key = ?',
      args.token,
      args.context.instanceId,
      ctx.leaseNow + args.claimMs,
      args.subscriber,
      textOf(row, 'session_key'),
    );
    lanes.push(yield* readLane(args, subscriber, row));
  }
  const next = yield* queryOne(
    'SELECT min(CASE WHEN claimed_until IS NULL THEN due_at END) AS at FROM lanes WHERE subscriber = ?',
    args.subscriber,
  );
  const at = next === undefined ? null : nullableNumber(next, 'at');
  return { lanes, nextDueInMs: at === null ? null : at - ctx.now };
}

/** Due lanes that nobody holds, locked: first those that never failed, then as many of the others as may be. */
function* dueLanes(ctx: TxContext, args: ClaimArgs): Tx<Row[]> {
  const lock = ctx.dialect.forUpdate === '' ? '' : `${ctx.dialect.forUpdate} SKIP LOCKED`;
  const rows = yield* query(
    `SELECT * FROM lanes WHERE subscriber = ? AND (due_at <= ? OR due_at > ?)
       AND (claimed_until IS NULL OR claimed_until <= ? OR token = ?)
     ORDER BY CASE WHEN attempts + waits = 0 THEN 0 ELSE 1 END, due_at, next_no LIMIT ? ${lock}`,
    args.subscriber,
    ctx.now,
    ctx.now + LONGEST_BACKOFF_MS,
    ctx.leaseNow,
    args.token,
    args.lanes,
  );
  const failedBefore = (row: Row): boolean => numberOf(row, 'attempts') + numberOf(row, 'waits') > 0;
  const fresh = rows.filter((row) => !failedBefore(row));
  return [...fresh, ...rows.filter(failedBefore).slice(0, args.retries)];
}

function* readLane(args: ClaimArgs, subscriber: Subscriber, row: Row): Tx<ClaimedLane> {
  const key = textOf(row, 'session_key');
  const replays = yield* query(
    `SELECT e.no, e.type, e.body FROM dead_letters d JOIN events e ON e.no = d.event_no
     WHERE d.subscriber = ? AND d.session_key = ? AND d.replay = 1 ORDER BY e.no LIMIT ?`,
    args.subscriber,
    key,
    args.eventsPerLane,
  );
  const nextNo = numberOf(row, 'next_no');
  const fresh =
    replays.length === args.eventsPerLane
      ? []
      : yield* query(
          'SELECT no, type, body FROM events WHERE session_key = ? AND no >= ? AND no <= ? ORDER BY no LIMIT ?',
          key,
          nextNo,
          numberOf(row, 'last_no'),
          args.eventsPerLane - replays.length,
        );
  const last = fresh.at(-1);
  return {
    subscriber: args.subscriber,
    key,
    token: args.token,
    attempts: numberOf(row, 'attempts'),
    waits: numberOf(row, 'waits'),
    events: [
      ...replays.map((event) => laneEvent(event, true)),
      ...fresh.map((event) => laneEvent(event, false)).filter(({ event }) => wants(subscriber, event)),
    ],
    upTo: last === undefined ? nextNo - 1 : numberOf(last, 'no'),
  };
}

function wants(subscriber: Subscriber, event: MoiraiEvent): boolean {
  if (event.type === 'hook:failed' && event.subscriber === subscriber.name) return false;
  return listens(subscriber, event.type);
}

function laneEvent(row: Row, replay: boolean): LaneEvent {
  return { no: numberOf(row, 'no'), event: JSON.parse(textOf(row, 'body')) as MoiraiEvent, replay };
}

export interface LaneTicket {
  readonly subscriber: string;
  readonly key: string;
  readonly token: string;
}

/** What of a claim was delivered: fresh events up to a number, and dead letters that were replayed. */
export interface Delivered {
  readonly upTo: number;
  readonly replayed: readonly number[];
}

/** Moves a lane past what was delivered and gives it back. False when the claim was no longer ours. */
export function* ackLane(
  ctx: TxContext,
  args: { context: CommandContext; lane: LaneTicket; delivered: Delivered },
): Tx<boolean> {
  yield* enter(ctx, args.context);
  return yield* advance(ctx, args.lane, args.delivered, { dueAt: AT_ONCE, attempts: 0, waits: 0, error: null });
}

interface LaneAfter {
  readonly dueAt: number;
  readonly attempts: number;
  readonly waits: number;
  readonly error: string | null;
}

/** Every acknowledgement carries the claim's token: who lost the claim meanwhile changes nothing. */
function* advance(ctx: TxContext, lane: LaneTicket, delivered: Delivered, after: LaneAfter): Tx<boolean> {
  const kept = yield* queryOne(
    `UPDATE lanes SET next_no = ?, due_at = ?, attempts = ?, waits = ?, last_error = ?,
       token = NULL, claimed_by = NULL, claimed_until = NULL
     WHERE subscriber = ? AND session_key = ? AND token = ? RETURNING last_no`,
    delivered.upTo + 1,
    after.dueAt,
    after.attempts,
    after.waits,
    after.error,
    lane.subscriber,
    lane.key,
    lane.token,
  );
  if (kept === undefined) return false;
  for (const no of delivered.replayed) {
    yield* query('DELETE FROM dead_letters WHERE subscriber = ? AND event_no = ?', lane.subscriber, no);
  }
  if (numberOf(kept, 'last_no') > delivered.upTo) {
    ctx.effects.subscribers.add(lane.subscriber);
    return true;
  }
  yield* query(
    `DELETE FROM lanes WHERE subscriber = ? AND session_key = ? AND NOT EXISTS (
       SELECT 1 FROM dead_letters d
       WHERE d.subscriber = lanes.subscriber AND d.session_key = lanes.session_key AND d.replay = 1)`,
    lane.subscriber,
    lane.key,
  );
  return true;
}

export interface FailArgs {
  readonly context: CommandContext;
  readonly lane: LaneTicket;
  /** What went through before the failure. */
  readonly delivered: Delivered;
  readonly failed: {
    readonly no: number;
    readonly eventId: string;
    readonly eventType: string;
    readonly replay: boolean;
  };
  readonly error: string;
  /** Attempts and waits this event has had, this one included. */
  readonly attempts: number;
  readonly waits: number;
  readonly retryInMs: number;
  /** It had its last attempt: keep it as a dead letter and let the lane go on. */
  readonly dead: boolean;
}

/** A subscriber failed an event: the lane waits and tries again, or goes on without it. */
export function* failLane(ctx: TxContext, args: FailArgs): Tx<boolean> {
  const scope = yield* enter(ctx, args.context);
  const { lane, failed, dead } = args;
  // The event about the failure joins the conversation's log, so its lock comes before the lane's.
  yield* lockKey(ctx, lane.key);
  const error = storableText(args.error, 'the error').slice(0, 2000);
  const past = dead && !failed.replay ? failed.no : args.delivered.upTo;
  const mine = yield* advance(
    ctx,
    lane,
    { upTo: past, replayed: args.delivered.replayed },
    dead
      ? { dueAt: AT_ONCE, attempts: 0, waits: 0, error }
      : { dueAt: ctx.now + args.retryInMs, attempts: args.attempts, waits: args.waits, error },
  );
  if (!mine) return false;
  if (dead) yield* deadLetter(ctx, args, error);
  const first = args.attempts + args.waits === 1;
  if ((first || dead) && failed.eventType !== 'hook:failed') yield* tellFailure(ctx, scope.subscribers, args, error);
  return true;
}

function* deadLetter(ctx: TxContext, args: FailArgs, error: string): Tx<void> {
  yield* query(
    `INSERT INTO dead_letters (subscriber, event_no, session_key, event_id, attempts, error, at, replay)
     VALUES (?, ?, ?, ?, ?, ?, ?, 0)
     ON CONFLICT (subscriber, event_no) DO UPDATE SET attempts = excluded.attempts, error = excluded.error,
       at = excluded.at, replay = 0`,
    args.lane.subscriber,
    args.failed.no,
    args.lane.key,
    args.failed.eventId,
    args.attempts,
    error,
    ctx.now,
  );
}

function* tellFailure(ctx: TxContext, subscribers: readonly Subscriber[], args: FailArgs, error: string): Tx<void> {
  const row = yield* queryOne('SELECT body FROM events WHERE no = ?', args.failed.no);
  if (row === undefined) return;
  const about = JSON.parse(textOf(row, 'body')) as MoiraiEvent;
  const { session_id, session_key, platform, user_id, kind } = about;
  const { attempts, dead } = args;
  const subscriber = args.lane.subscriber;
  yield* record(ctx, subscribers, [
    {
      id: `${args.failed.eventId}:${subscriber}:${dead ? 'dead' : 'failed'}:${args.lane.token}`,
      sessionSeq: null,
      place: { session_id, session_key, platform, user_id, kind, instance: args.context.instanceId },
      draft: { type: 'hook:failed', fields: { subscriber, event_id: args.failed.eventId, attempts, error, dead } },
      except: subscriber,
    },
  ]);
}

/** Frees the lanes a dead instance held, so that nobody waits for its claims to run out. */
export function* releaseLanes(_ctx: TxContext, instance: string): Tx<void> {
  yield* query('UPDATE lanes SET token = NULL, claimed_by = NULL, claimed_until = NULL WHERE claimed_by = ?', instance);
}

/** Delivers dead letters again, in order; or everything from a public number on. */
export function* replay(ctx: TxContext, args: { subscriber: string; fromSeq: number | null }): Tx<{ events: number }> {
  const known = yield* queryOne('SELECT name FROM subscribers WHERE name = ?', args.subscriber);
  if (known === undefined) throw new MoiraiError('subscriber_not_found', `no subscriber "${args.subscriber}"`);
  ctx.effects.subscribers.add(args.subscriber);
  if (args.fromSeq !== null) return yield* replayFrom(ctx, args.subscriber, args.fromSeq);
  yield* query(
    `INSERT INTO lanes (subscriber, session_key, next_no, last_no, due_at, attempts, waits)
     SELECT subscriber, session_key, max(event_no) + 1, max(event_no), 0, 0, 0
     FROM dead_letters
     WHERE subscriber = ? AND replay = 0 GROUP BY subscriber, session_key
     ON CONFLICT (subscriber, session_key) DO UPDATE SET due_at = excluded.due_at, attempts = 0, waits = 0`,
    args.subscriber,
  );
  const flagged = yield* query(
    'UPDATE dead_letters SET replay = 1 WHERE subscriber = ? AND replay = 0 RETURNING event_no',
    args.subscriber,
  );
  return { events: flagged.length };
}

function* replayFrom(ctx: TxContext, subscriber: string, fromSeq: number): Tx<{ events: number }> {
  yield* sequenceEvents(ctx);
  const seq = ctx.dialect.seqColumn;
  const counted = yield* queryOne(`SELECT count(*) AS n FROM events WHERE ${seq} >= ?`, fromSeq);
  // A lane that is claimed now loses its token: what it delivers comes again, in order, as asked for.
  yield* query(
    `INSERT INTO lanes (subscriber, session_key, next_no, last_no, due_at, attempts, waits)
     SELECT CAST(? AS TEXT), session_key, min(no), max(no), 0, 0, 0
     FROM events WHERE ${seq} >= ? GROUP BY session_key
     ON CONFLICT (subscriber, session_key) DO UPDATE SET due_at = excluded.due_at, attempts = 0, waits = 0,
       next_no = CASE WHEN lanes.next_no < excluded.next_no THEN lanes.next_no ELSE excluded.next_no END,
       token = NULL, claimed_by = NULL, claimed_until = NULL`,
    subscriber,
    fromSeq,
  );
  return { events: counted === undefined ? 0 : numberOf(counted, 'n') };
}

export interface SubscriberStatus {
  readonly name: string;
  readonly patterns: readonly string[];
  readonly createdAt: number;
  /** Conversations with something undelivered. */
  readonly lanes: number;
  /** Undelivered events (an upper bound: a lane's range may hold events the subscriber does not listen to). */
  readonly lag: number;
  /** Since when the oldest of them waits. */
  readonly oldestPendingAt: number | null;
  /** Failed attempts of what is pending. */
  readonly failures: number;
  readonly deadLetters: number;
  readonly lastError: string | null;
}

export function* listSubscribers(_ctx: TxContext, _args: Record<never, never>): Tx<SubscriberStatus[]> {
  const rows = yield* query('SELECT * FROM subscribers ORDER BY name');
  const statuses: SubscriberStatus[] = [];
  for (const row of rows) statuses.push(yield* statusOf(row));
  return statuses;
}

function* statusOf(row: Row): Tx<SubscriberStatus> {
  const name = textOf(row, 'name');
  const pending = yield* queryOne(
    `SELECT count(*) AS lanes, coalesce(sum(attempts + waits), 0) AS failures,
       coalesce(sum((SELECT count(*) FROM events e
         WHERE e.session_key = lanes.session_key AND e.no >= lanes.next_no AND e.no <= lanes.last_no)), 0) AS lag,
       min((SELECT at FROM events e WHERE e.session_key = lanes.session_key AND e.no >= lanes.next_no
         ORDER BY e.no LIMIT 1)) AS oldest
     FROM lanes WHERE subscriber = ?`,
    name,
  );
  const dead = yield* queryOne('SELECT count(*) AS n FROM dead_letters WHERE subscriber = ?', name);
  const error = yield* queryOne(
    `SELECT last_error AS error FROM lanes WHERE subscriber = ? AND last_error IS NOT NULL
     UNION ALL SELECT error FROM dead_letters WHERE subscriber = ? LIMIT 1`,
    name,
    name,
  );
  return {
    name,
    patterns: patternsOf(textOf(row, 'patterns')),
    createdAt: numberOf(row, 'created_at'),
    lanes: pending === undefined ? 0 : numberOf(pending, 'lanes'),
    lag: pending === undefined ? 0 : numberOf(pending, 'lag'),
    oldestPendingAt: pending === undefined ? null : nullableNumber(pending, 'oldest'),
    failures: pending === undefined ? 0 : numberOf(pending, 'failures'),
    deadLetters: dead === undefined ? 0 : numberOf(dead, 'n'),
    lastError: error === undefined ? null : nullableText(error, 'error'),
  };
}

export interface DeadLetter {
  readonly subscriber: string;
  readonly eventId: string;
  readonly key: string;
  readonly attempts: number;
  readonly error: string;
  readonly at: number;
}

export function* listDeadLetters(
  _ctx: TxContext,
  args: { subscriber: string | null; limit: number },
): Tx<DeadLetter[]> {
  const rows =
    args.subscriber === null
      ? yield* query('SELECT * FROM dead_letters ORDER BY subscriber, event_no LIMIT ?', args.limit)
      : yield* query(
          'SELECT * FROM dead_letters WHERE subscriber = ? ORDER BY event_no LIMIT ?',
          args.subscriber,
          args.limit,
        );
  return rows.map((row) => ({
    subscriber: textOf(row, 'subscriber'),
    eventId: textOf(row, 'event_id'),
    key: textOf(row, 'session_key') === NO_KEY ? '' : textOf(row, 'session_key'),
    attempts: numberOf(row, 'attempts'),
    error: textOf(row, 'error'),
    at: numberOf(row, 'at'),
  }));
}
