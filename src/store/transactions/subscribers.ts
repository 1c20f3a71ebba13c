import { MoiraiError } from '../../errors/moirai-error.ts';
import { assertPattern } from '../../lifecycle/events.ts';
import { integer, nullableInteger, type RowOf, selectedAs, selectValues, Table, text, wordList } from '../table.ts';
import { query, type Tx, type TxContext } from '../transaction.ts';
import { sequenceEvents } from './reading.ts';
import { queueOf } from './record.ts';

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
  yield* ctx.dialect.lockRegistration();
  const [known] = yield* selectValues(text, 'SELECT patterns FROM subscribers WHERE name = ?', args.name);
  // Every process that boots registers what is registered already: it must not stop all writers for that.
  if (known === patterns) return { created: false };
  yield* ctx.dialect.holdWriters();
  if (known !== undefined) {
    yield* query('UPDATE subscribers SET patterns = ? WHERE name = ?', patterns, args.name);
    return { created: false };
  }
  yield* query('INSERT INTO subscribers (name, patterns, created_at) VALUES (?, ?, ?)', args.name, patterns, ctx.now);
  if (args.from !== 'now') yield* openLanesFrom(ctx, args.name, args.from);
  return { created: true };
}

function* openLanesFrom(ctx: TxContext, name: string, from: 'open' | 'start'): Tx<void> {
  const first =
    from === 'start'
      ? 'SELECT session_key, min(no) AS first_no, max(no) AS last_no FROM events GROUP BY session_key'
      : // Of a session older than the log, what is left of it.
        `SELECT s.key AS session_key, coalesce(e.no,
             (SELECT min(no) FROM events WHERE session_key = s.key AND session_id = s.id)) AS first_no,
           (SELECT max(no) FROM events WHERE session_key = s.key) AS last_no
         FROM sessions s LEFT JOIN events e ON e.session_id = s.id AND e.type = 'session:start'
         WHERE s.state <> 'ended'`;
  yield* query(
    `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted)
     SELECT CAST(? AS TEXT), session_key, first_no, last_no, 0, 0, 0, 0
     FROM (${first}) history WHERE first_no IS NOT NULL`,
    queueOf(name),
  );
  ctx.effects.queues.add(queueOf(name));
}

/** Removes a subscriber with everything it has not received. */
export function* unsubscribe(ctx: TxContext, args: { name: string }): Tx<void> {
  yield* ctx.dialect.lockRegistration();
  yield* ctx.dialect.holdWriters();
  yield* query('DELETE FROM subscribers WHERE name = ?', args.name);
  yield* query('DELETE FROM lanes WHERE queue = ?', queueOf(args.name));
  yield* query('DELETE FROM dead_letters WHERE subscriber = ?', args.name);
}

/** Delivers dead letters again, in order; or everything from a public number on. */
export function* replay(ctx: TxContext, args: { subscriber: string; fromSeq: number | null }): Tx<{ events: number }> {
  const known = yield* query('SELECT name FROM subscribers WHERE name = ?', args.subscriber);
  if (known.length === 0) throw new MoiraiError('subscriber_not_found', `no subscriber "${args.subscriber}"`);
  const queue = queueOf(args.subscriber);
  ctx.effects.queues.add(queue);
  if (args.fromSeq !== null) return yield* replayFrom(ctx, queue, args.fromSeq);
  // A lane made for its dead letters alone begins behind all that was delivered: what happens next must not bring it back.
  yield* query(
    `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted)
     SELECT CAST(? AS TEXT), d.session_key, (SELECT max(no) FROM events WHERE session_key = d.session_key) + 1,
       (SELECT max(no) FROM events WHERE session_key = d.session_key), 0, 0, 0, 0
     FROM (SELECT DISTINCT session_key FROM dead_letters WHERE subscriber = ? AND replay = 0) d
     WHERE true
     ON CONFLICT (queue, key) DO UPDATE SET due_at = excluded.due_at, attempts = 0, waits = 0`,
    queue,
    args.subscriber,
  );
  const flagged = yield* query(
    'UPDATE dead_letters SET replay = 1 WHERE subscriber = ? AND replay = 0 RETURNING event_no',
    args.subscriber,
  );
  return { events: flagged.length };
}

function* replayFrom(ctx: TxContext, queue: string, fromSeq: number): Tx<{ events: number }> {
  yield* sequenceEvents(ctx);
  const seq = ctx.dialect.seqColumn;
  const [events = 0] = yield* selectValues(integer, `SELECT count(*) FROM events WHERE ${seq} >= ?`, fromSeq);
  // A lane that is claimed now loses its token: what it delivers comes again, in order, as asked for.
  yield* query(
    `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted)
     SELECT CAST(? AS TEXT), session_key, min(no), max(no), 0, 0, 0, 0
     FROM events WHERE ${seq} >= ? GROUP BY session_key
     ON CONFLICT (queue, key) DO UPDATE SET due_at = excluded.due_at, attempts = 0, waits = 0,
       next_no = CASE WHEN lanes.next_no < excluded.next_no THEN lanes.next_no ELSE excluded.next_no END,
       token = NULL, claimed_by = NULL`,
    queue,
    fromSeq,
  );
  return { events };
}

const SUBSCRIBERS = new Table('subscribers', { name: text, patterns: wordList(), createdAt: integer });

/** What a subscriber has not received. */
const PENDING = new Table('lanes', {
  /** Conversations with something undelivered. */
  lanes: integer,
  /** Undelivered events (an upper bound: a lane's range may hold events the subscriber does not listen to). */
  lag: integer,
  /** Since when the oldest of them waits. */
  oldestPendingAt: nullableInteger,
  /** Failed attempts of what is pending. */
  failures: integer,
});

export interface SubscriberStatus extends RowOf<typeof SUBSCRIBERS>, RowOf<typeof PENDING> {
  readonly deadLetters: number;
  readonly lastError: string | null;
}

export function* listSubscribers(_ctx: TxContext, _args: Record<never, never>): Tx<SubscriberStatus[]> {
  const statuses: SubscriberStatus[] = [];
  for (const subscriber of yield* SUBSCRIBERS.select('ORDER BY name')) statuses.push(yield* statusOf(subscriber));
  return statuses;
}

function* statusOf(subscriber: RowOf<typeof SUBSCRIBERS>): Tx<SubscriberStatus> {
  const { name } = subscriber;
  const [pending = { lanes: 0, lag: 0, oldestPendingAt: null, failures: 0 }] = yield* PENDING.selectAs(
    `SELECT count(*), coalesce(sum((SELECT count(*) FROM events e
         WHERE e.session_key = lanes.key AND e.no >= lanes.next_no AND e.no <= lanes.last_no)), 0),
       min((SELECT at FROM events e WHERE e.session_key = lanes.key AND e.no >= lanes.next_no
         ORDER BY e.no LIMIT 1)),
       coalesce(sum(attempts + waits), 0)
     FROM lanes WHERE queue = ?`,
    queueOf(name),
  );
  const [deadLetters = 0] = yield* selectValues(
    integer,
    'SELECT count(*) FROM dead_letters WHERE subscriber = ?',
    name,
  );
  const [lastError = null] = yield* selectValues(
    text,
    `SELECT error FROM lanes WHERE queue = ? AND error IS NOT NULL
     UNION ALL SELECT error FROM dead_letters WHERE subscriber = ? LIMIT 1`,
    queueOf(name),
    name,
  );
  return { ...subscriber, ...pending, deadLetters, lastError };
}

const DEAD_LETTERS = new Table('dead_letters', {
  subscriber: text,
  eventId: text,
  /** Empty for events of no conversation. */
  key: selectedAs('session_key', text),
  attempts: integer,
  error: text,
  at: integer,
});

export type DeadLetter = RowOf<typeof DEAD_LETTERS>;

export function* listDeadLetters(
  _ctx: TxContext,
  args: { subscriber: string | null; limit: number },
): Tx<DeadLetter[]> {
  if (args.subscriber === null) return yield* DEAD_LETTERS.select('ORDER BY subscriber, event_no LIMIT ?', args.limit);
  return yield* DEAD_LETTERS.select('WHERE subscriber = ? ORDER BY event_no LIMIT ?', args.subscriber, args.limit);
}
