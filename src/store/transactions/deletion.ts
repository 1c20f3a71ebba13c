import { MoiraiError } from '../../errors/moirai-error.ts';
import type { SessionWithTurns } from '../../lifecycle/session.ts';
import type { SessionKind, Trigger } from '../../lifecycle/states.ts';
import { pageSize } from '../limits.ts';
import { integer, selectValues, Table, text, word } from '../table.ts';
import { batch, type Param, type Tx, type TxContext } from '../transaction.ts';
import { apply } from './apply.ts';
import { eraseEvents, eraseWords, lockDescendants } from './erasure.ts';
import { keyOfSession } from './reading.ts';
import { type CommandContext, enter, lockKey, lockSessions, sessionQuery, withTurns } from './sessions.ts';

/*
 * A session that is removed leaves its events: the log is the truth, and says that it began and how it ended. All else
 * goes, except as long as a session exists that continues it and sees its transcript. One that is deleted on request takes
 * its words out of its events as well; one that was kept long enough leaves them to the retention of the log.
 */

/** Of the session `s`. */
const CONTINUED = `EXISTS (SELECT 1 FROM sessions c
  WHERE c.parent_id = s.id AND (c.lineage = 'resume' OR c.lineage = 'branch'))`;
/** A reply that has not left yet, of the session `s`. */
const UNSENT = `EXISTS (SELECT 1 FROM deliveries d
  WHERE d.session_id = s.id AND d.state = 'queued')`;
/** What a memory has not been told yet of the session `s`: it is told with the transcript. */
const UNTOLD = `EXISTS (SELECT 1 FROM lanes l JOIN events e
    ON e.session_key = l.key AND e.no >= l.next_no AND e.no <= l.last_no
  WHERE l.queue IN (SELECT 'events/' || name FROM subscribers WHERE name LIKE 'memory%')
    AND l.key = s.key AND e.session_id = s.id)`;

export interface DeleteArgs {
  readonly context: CommandContext;
  readonly sessionId: string;
  readonly trigger: Trigger;
}

export interface Deleted {
  /** It was open, and ended as `deleted` by this. */
  readonly ended: boolean;
  /** It had been removed before. */
  readonly already: boolean;
}

/** Removes a session, an open one after its end. Throws `session_continued` while another one sees its transcript. */
export function* deleteSession(ctx: TxContext, args: DeleteArgs): Tx<Deleted> {
  const { context, sessionId, trigger } = args;
  const scope = yield* enter(ctx, context);
  const loaded = yield* lockExisting(ctx, sessionId);
  if (loaded === null) return { ended: false, already: true };
  yield* refuseContinued(sessionId);
  const open = loaded.session.state !== 'ended';
  if (open) {
    const end = { name: 'end', reason: 'deleted', cause: null, trigger, successorId: null, epoch: null } as const;
    yield* apply(ctx, scope, yield* withTurns(loaded, 'all'), [end]);
  }
  const gone = [loaded.session, ...(yield* lockDescendants(ctx, sessionId))];
  for (const session of gone) yield* eraseWords(ctx, session);
  yield* remove(
    ctx,
    gone.map(({ id }) => id),
  );
  return { ended: open, already: false };
}

/** Null for a session that was removed. That it ever was is in the log, which also names its conversation. */
function* lockExisting(ctx: TxContext, sessionId: string): Tx<SessionWithTurns | null> {
  const key = yield* keyOfSession(sessionId);
  if (key === null) throw new MoiraiError('session_not_found', `no session ${sessionId}`);
  // Whoever continues it holds the same lock: nobody begins to see a transcript that is about to go.
  yield* lockKey(ctx, key);
  const [loaded] = yield* batch(sessionQuery(ctx, sessionId));
  if (loaded !== undefined) return loaded;
  yield* eraseEvents(sessionId, key);
  return null;
}

function* refuseContinued(sessionId: string): Tx<void> {
  const by = yield* selectValues(
    text,
    `SELECT id FROM sessions WHERE parent_id = ? AND (lineage = 'resume' OR lineage = 'branch') ORDER BY id LIMIT 5`,
    sessionId,
  );
  if (by.length === 0) return;
  throw new MoiraiError('session_continued', `session ${sessionId} is continued by ${by.join(', ')}`, {
    details: { by },
  });
}

/** Ended sessions of a kind that were kept long enough. */
export interface PruneRule {
  readonly kind: SessionKind;
  readonly olderThanMs: number;
}

/**
 * Removes ended sessions, the oldest first, a batch at a time. One that is continued goes in a later batch than what
 * continues it: call again until nothing is removed. One that a memory still has to be told of stays.
 */
export function* pruneSessions(
  ctx: TxContext,
  args: { context: CommandContext; rule: PruneRule; limit: number },
): Tx<{ removed: string[] }> {
  yield* enter(ctx, args.context);
  const { sql, params } = prunable(ctx, [args.rule]);
  const found = yield* selectValues(
    text,
    `SELECT s.id FROM sessions s WHERE ${sql} AND NOT ${CONTINUED}
     ORDER BY s.ended_at, s.id LIMIT ? ${ctx.dialect.skipLocked}`,
    ...params,
    pageSize(args.limit),
  );
  const loaded = yield* lockSessions(ctx, found);
  const locked = JSON.stringify(loaded.map(({ session }) => session.id));
  // Between the search and the lock somebody may have continued one.
  const removed = yield* selectValues(
    text,
    `SELECT s.id FROM sessions s WHERE s.id IN (${ctx.dialect.listed}) AND NOT ${CONTINUED} ORDER BY s.ended_at, s.id`,
    locked,
  );
  if (removed.length > 0) yield* remove(ctx, removed);
  return { removed };
}

/** How many sessions of each kind `pruneSessions` would remove, called until nothing is left to do. */
export function* prunableSessions(
  ctx: TxContext,
  args: { rules: readonly PruneRule[] },
): Tx<Partial<Record<SessionKind, number>>> {
  if (args.rules.length === 0) return {};
  const { sql, params } = prunable(ctx, args.rules);
  const continuing = "(s.lineage = 'resume' OR s.lineage = 'branch')";
  const rows = yield* KINDS.selectAs(
    `SELECT s.kind, count(*) FROM sessions s WHERE ${sql} AND s.id NOT IN (
       WITH RECURSIVE seen(id) AS (
         SELECT s.parent_id FROM sessions s WHERE ${continuing} AND NOT (${sql})
         UNION SELECT s.parent_id FROM seen JOIN sessions s ON s.id = seen.id WHERE ${continuing}
       ) SELECT id FROM seen WHERE id IS NOT NULL
     ) GROUP BY s.kind ORDER BY s.kind`,
    ...params,
    ...params,
  );
  return Object.fromEntries(rows.map(({ kind, sessions }) => [kind, sessions]));
}

const KINDS = new Table('sessions', { kind: word<SessionKind>(), sessions: integer });

/** True, and never unknown, of a session `s` that one of the rules lets go. */
function prunable(ctx: TxContext, rules: readonly PruneRule[]): { sql: string; params: Param[] } {
  const due = rules.map(() => '(s.kind = ? AND s.ended_at IS NOT NULL AND s.ended_at <= ?)').join(' OR ');
  const params = rules.flatMap(({ kind, olderThanMs }): Param[] => [kind, ctx.now - olderThanMs]);
  return { sql: `(${due}) AND NOT ${UNSENT} AND NOT ${UNTOLD}`, params };
}

/** Removes all of ended sessions but their events. The conversations are locked. */
function* remove(ctx: TxContext, sessionIds: readonly string[]): Tx<void> {
  const { listed, forgetMessages } = ctx.dialect;
  const ids = JSON.stringify(sessionIds);
  const params = [ids];
  yield [
    { sql: `DELETE FROM live_replies WHERE turn_id IN (SELECT id FROM turns WHERE session_id IN (${listed}))`, params },
    { sql: `DELETE FROM turn_files WHERE turn_id IN (SELECT id FROM turns WHERE session_id IN (${listed}))`, params },
    // An ended session has no turns but these.
    { sql: `DELETE FROM turns WHERE session_id IN (${listed}) AND state = 'over'`, params },
    ...forgetMessages(ids),
    { sql: `DELETE FROM deliveries WHERE session_id IN (${listed})`, params },
    { sql: `DELETE FROM commands WHERE session_id IN (${listed})`, params },
    { sql: `DELETE FROM approvals WHERE session_id IN (${listed})`, params },
    { sql: `DELETE FROM job_runs WHERE session_id IN (${listed})`, params },
    { sql: `DELETE FROM sessions WHERE id IN (${listed})`, params },
    { sql: DONE_JOBS, params: [] },
  ];
}

/** A job that was for one time is kept as long as its run. */
const DONE_JOBS = `DELETE FROM jobs WHERE NOT EXISTS (SELECT 1 FROM lanes WHERE queue = 'ticks' AND key = jobs.id) AND paused_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM job_runs r WHERE r.job_id = jobs.id)`;
