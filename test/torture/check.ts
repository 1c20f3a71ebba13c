import { type AckFigures, checkAcks, wantedEvents } from './check-acks.ts';
import { checkLog, type Log } from './check-log.ts';
import { checkReplies, checkRest, checkTables, readTables, type Tables } from './check-store.ts';
import type { Sql } from './sql.ts';
import type { Violations } from './violations.ts';

export interface Figures extends AckFigures {
  readonly sessions: number;
  /** How many ended for which reason. */
  readonly ended: Readonly<Record<string, number>>;
  readonly open: number;
  readonly turns: number;
  readonly replies: number;
  readonly events: number;
  readonly delivered: Log['delivered'];
}

/** Holds the store, the log, and what all processes wrote down against each other. */
export async function checkEverything(
  sql: Sql,
  directory: string,
  followed: readonly string[],
  violations: Violations,
): Promise<Figures> {
  const log = await checkLog(sql, directory, wantedEvents(directory), violations);
  const tables = await readTables(sql, violations);
  checkTables(tables, log, violations);
  checkReplies(tables, log, directory, violations);
  const acks = checkAcks(directory, tables, log, violations);
  checkFollowed(followed, log, violations);
  await checkRest(sql, violations);
  const ended = countEnds(tables);
  const over = Object.values(ended).reduce((sum, n) => sum + n, 0);
  return {
    ...acks,
    sessions: tables.sessions.size,
    ended,
    open: tables.sessions.size - over,
    turns: tables.turns.size,
    replies: tables.deliveries.size,
    events: log.events,
    delivered: log.delivered,
  };
}

/** A reader that followed the public numbers saw every event once. */
function checkFollowed(followed: readonly string[], log: Log, violations: Violations): void {
  const seen = new Set(followed);
  violations.expect(seen.size === followed.length, 'a reader of the log saw an event twice', () => {
    return `${followed.length - seen.size} times`;
  });
  for (const id of log.ids) violations.expect(seen.has(id), 'a reader of the log missed an event', () => id);
}

function countEnds(tables: Tables): Record<string, number> {
  const ended: Record<string, number> = {};
  for (const { end_reason } of tables.sessions.values()) {
    if (end_reason !== null) ended[String(end_reason)] = (ended[String(end_reason)] ?? 0) + 1;
  }
  return ended;
}
