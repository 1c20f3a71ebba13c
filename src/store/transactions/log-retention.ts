import { integer, nullableInteger, selectValues, Table } from '../table.ts';
import { query, type Tx, type TxContext } from '../transaction.ts';
import { type CommandContext, enter } from './sessions.ts';

/** Where the log begins: every event since then is there, and of those before only some. */
const BEGINS = 'log_begins';

export function* logBegins(ctx: TxContext): Tx<number> {
  const sql = `SELECT CAST(value AS ${ctx.dialect.integer}) FROM meta WHERE name = '${BEGINS}'`;
  const [begins = 0] = yield* selectValues(integer, sql);
  return begins;
}

const PAGE = new Table('events', { last: nullableInteger, old: integer });
/** That a subscriber has not received the event yet, or has failed at it for good and may want it again. */
const WANTED = `EXISTS (SELECT 1 FROM lanes l WHERE l.queue IN (SELECT 'events/' || name FROM subscribers)
    AND l.key = events.session_key AND l.next_no <= events.no)
  OR EXISTS (SELECT 1 FROM dead_letters d WHERE d.subscriber IN (SELECT name FROM subscribers)
    AND d.event_no = events.no)`;

/**
 * Removes events that were kept long enough, oldest first, among the next `limit` after a number. The newest event stays,
 * however old: the numbers of later ones go on behind it. `next` is where to go on; null when the rest is younger.
 */
export function* pruneEvents(
  ctx: TxContext,
  args: { context: CommandContext; olderThanMs: number; after: number; limit: number },
): Tx<{ removed: number; next: number | null }> {
  yield* enter(ctx, args.context);
  const before = ctx.now - args.olderThanMs;
  const { after, limit } = args;
  const [page] = yield* PAGE.selectAs(
    `SELECT max(no), coalesce(sum(CASE WHEN at < ? THEN 1 ELSE 0 END), 0)
     FROM (SELECT no, at FROM events WHERE no > ? ORDER BY no LIMIT ?) page`,
    ...[before, after, limit],
  );
  // By the numbers, which have an index: those of a log grow with its times, so that a page of young events is the end.
  if (page === undefined || page.last === null || page.old === 0) return { removed: 0, next: null };
  const removed = yield* query(
    `DELETE FROM events WHERE no > ? AND no <= ? AND at < ? AND no < (SELECT max(no) FROM events) AND NOT (${WANTED})
     RETURNING no`,
    ...[after, page.last, before],
  );
  if (removed.length > 0) yield* moveBeginning(ctx, before);
  return { removed: removed.length, next: page.last };
}

function* moveBeginning(ctx: TxContext, before: number): Tx<void> {
  if ((yield* logBegins(ctx)) >= before) return;
  yield* query(
    `INSERT INTO meta (name, value) VALUES ('${BEGINS}', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    String(before),
  );
}
