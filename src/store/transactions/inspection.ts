import { type Column, integer, selectValues, Table, text } from '../table.ts';
import type { Tx, TxContext } from '../transaction.ts';
import { logBegins } from './log-retention.ts';

const SETTINGS = new Table('settings', { name: text, value: text });

/** What the engine says of itself: its version and the settings that promises depend on. */
export function* engineSettings(ctx: TxContext, _args: Record<never, never>): Tx<Record<string, string>> {
  const rows = yield* SETTINGS.selectAs(ctx.dialect.settings);
  return Object.fromEntries(rows.map(({ name, value }) => [name, String(value)]));
}

/** What the engine finds wrong with its own files; null when it has no such check. */
export function* checkIntegrity(ctx: TxContext, _args: Record<never, never>): Tx<string[] | null> {
  if (ctx.dialect.integrityCheck === null) return null;
  const findings = yield* selectValues(text, ctx.dialect.integrityCheck);
  return findings.filter((finding) => finding !== 'ok');
}

/** What is promised of every session, as a question to the rows: the condition is true where a promise is broken. */
const PROMISES = {
  starts_once: 'starts <> 1 AND NOT (older AND starts = 0)',
  ends_once: "state = 'ended' AND ends <> 1 AND NOT (ended_before AND ends = 0)",
  open_has_no_end: "state NOT IN ('ended', 'removed') AND ends <> 0",
  numbers_match_the_row: 'seq <> last_seq AND NOT (older AND numbered = 0)',
  numbers_have_no_gap: 'numbered <> last_seq - first_seq + 1 OR (first_seq > 1 AND NOT older)',
  end_comes_last: "state IN ('ended', 'removed') AND ends = 1 AND end_seq <> last_seq",
  removed_has_ended: "state = 'removed' AND ends <> 1 AND NOT (older AND numbered = 0)",
} as const;

export type PromiseName = keyof typeof PROMISES;

const BROKEN = new Table(
  'lives',
  Object.fromEntries(Object.keys(PROMISES).map((promise) => [promise, integer])) as Record<PromiseName, Column<number>>,
);

/** How a promise is kept: by all sessions when `broken` is 0. */
export interface PromiseReport {
  readonly promise: PromiseName;
  readonly broken: number;
  /** Some of the sessions concerned. */
  readonly sessionIds: readonly string[];
}

/**
 * Each session beside what the log says of it since it begins; `removed` are those of which only the log knows, `older`
 * those that began before it.
 */
function lives(begins: number): string {
  return `
  SELECT coalesce(s.id, e.session_id) AS id, coalesce(s.state, 'removed') AS state,
    CASE WHEN s.id IS NULL THEN ${begins} > 0 AND coalesce(e.first_seq, 2) > 1 ELSE s.started_at < ${begins} END AS older,
    coalesce(s.ended_at < ${begins}, ${begins} > 0) AS ended_before,
    coalesce(s.seq, e.last_seq) AS seq, coalesce(e.starts, 0) AS starts, coalesce(e.ends, 0) AS ends,
    coalesce(e.numbered, 0) AS numbered, coalesce(e.last_seq, 0) AS last_seq, coalesce(e.first_seq, 1) AS first_seq,
    coalesce(e.end_seq, 0) AS end_seq
  FROM sessions s FULL JOIN (
    SELECT session_id, count(session_seq) AS numbered, max(session_seq) AS last_seq, min(session_seq) AS first_seq,
      sum(CASE WHEN type = 'session:start' THEN 1 ELSE 0 END) AS starts,
      sum(CASE WHEN type = 'session:end' THEN 1 ELSE 0 END) AS ends,
      max(CASE WHEN type = 'session:end' THEN session_seq END) AS end_seq
    FROM events WHERE session_id IS NOT NULL AND at >= ${begins} GROUP BY session_id
  ) e ON e.session_id = s.id`;
}

/** Compares every session with its events. Reads the whole log once: for operators and tests, not for every day. */
export function* checkPromises(ctx: TxContext, args: { sample: number }): Tx<PromiseReport[]> {
  const begins = yield* logBegins(ctx);
  const counts = Object.entries(PROMISES).map(
    ([promise, broken]) => `coalesce(sum(CASE WHEN ${broken} THEN 1 ELSE 0 END), 0) AS ${promise}`,
  );
  const [row] = yield* BROKEN.selectAs(`SELECT ${counts.join(', ')} FROM (${lives(begins)}) lives`);
  const reports: PromiseReport[] = [];
  for (const promise of Object.keys(PROMISES) as PromiseName[]) {
    const broken = row?.[promise] ?? 0;
    const sessionIds = broken === 0 ? [] : yield* sampleOf(promise, args.sample, begins);
    reports.push({ promise, broken, sessionIds });
  }
  return reports;
}

function sampleOf(promise: PromiseName, limit: number, begins: number): Tx<string[]> {
  return selectValues(
    text,
    `SELECT id FROM (${lives(begins)}) lives WHERE ${PROMISES[promise]} ORDER BY id LIMIT ?`,
    limit,
  );
}
