import { MoiraiError } from '../../errors/moirai-error.ts';
import { nearestName } from '../../lifecycle/events.ts';
import type { EndReason, SessionState } from '../../lifecycle/states.ts';
import {
  nullableNumber,
  nullableText,
  numberOf,
  type Param,
  query,
  queryOne,
  type Row,
  type Tx,
  type TxContext,
  textOf,
} from '../transaction.ts';
import { type ReceiveArgs, type Received, receive } from './conversations.ts';
import { enter, lockKey } from './sessions.ts';

/** Where a job's result goes. */
export type JobTarget =
  /** The home channel, as it is when there is something to tell. */
  | { readonly to: 'home' }
  /** Nowhere: it stays in the transcript of the run. */
  | { readonly to: 'local' }
  | {
      readonly to: 'place';
      readonly platform: string;
      /** In the platform's own words. */
      readonly target: Readonly<Record<string, unknown>>;
      /** The conversation that is to know of it; null when it is not known which one that is. */
      readonly key: string | null;
    };

/** The newest run of a job, as its session tells of it. */
export interface JobRun {
  readonly sessionId: string;
  /** The time it was due at. */
  readonly tickAt: number;
  readonly state: SessionState;
  readonly endReason: EndReason | null;
}

/** Something that is done when its time comes. */
export interface Job {
  readonly id: string;
  readonly name: string | null;
  /** A text that `src/cron/schedule.ts` reads. */
  readonly schedule: string;
  readonly timezone: string;
  readonly prompt: string;
  readonly target: JobTarget;
  /** The key of the conversation it was made in; null for what an operator made. */
  readonly madeIn: string | null;
  readonly madeBy: string | null;
  readonly createdAt: number;
  readonly pausedAt: number | null;
  /** Null while it is paused, and when there is nothing left to do. */
  readonly nextAt: number | null;
  readonly lastRun: JobRun | null;
}

export type NewJob = Omit<Job, 'createdAt' | 'pausedAt' | 'nextAt' | 'lastRun'> & { readonly nextAt: number };

/** So many a conversation may have. What is made by machines needs a bound. */
const MOST_JOBS = 100;
const MOST_LISTED = 1000;

/** Throws `bad_input` where the maker has one of that name, or too many. */
export function* addJob(ctx: TxContext, job: NewJob): Tx<Job> {
  yield* lockKey(ctx, `jobs:${job.madeIn ?? ''}`);
  const { sql, params } = madeIn(job.madeIn);
  const own = yield* query(`SELECT name FROM jobs j WHERE ${sql}`, ...params);
  if (job.name !== null && own.some((row) => row.name === job.name)) {
    throw new MoiraiError('bad_input', `there is a job called "${job.name}" already`);
  }
  if (job.madeIn !== null && own.length >= MOST_JOBS) {
    throw new MoiraiError('bad_input', `this conversation has ${own.length} jobs already; remove one first`);
  }
  const row: Param[] = [job.id, job.name, job.schedule, job.timezone, job.prompt, JSON.stringify(job.target)];
  yield* query(
    `INSERT INTO jobs (id, name, schedule, timezone, prompt, target, made_in, made_by, created_at, next_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...row,
    job.madeIn,
    job.madeBy,
    ctx.now,
    job.nextAt,
  );
  return { ...job, createdAt: ctx.now, pausedAt: null, lastRun: null };
}

/** Takes a job out; what runs of it goes on to its end. False when there was none. */
export function* removeJob(_ctx: TxContext, args: { id: string }): Tx<boolean> {
  const gone = yield* query('DELETE FROM jobs WHERE id = ? RETURNING id', args.id);
  return gone.length > 0;
}

/** Sets when a job is due next; `paused` says whether that is all until it is resumed. Throws `job_not_found`. */
export function* scheduleJob(ctx: TxContext, args: { id: string; nextAt: number | null; paused: boolean }): Tx<Job> {
  yield* query(
    'UPDATE jobs SET next_at = ?, paused_at = CASE WHEN ? = 1 THEN COALESCE(paused_at, ?) END WHERE id = ?',
    args.nextAt,
    args.paused ? 1 : 0,
    ctx.now,
    args.id,
  );
  const row = yield* queryOne(`${SELECT_JOB} WHERE j.id = ?`, args.id);
  if (row === undefined) throw new MoiraiError('job_not_found', `there is no job ${args.id} any more`);
  return toJob(row);
}

/** Those of one conversation; all of them for an operator, with null. The next due comes first. */
export function* listJobs(_ctx: TxContext, args: { madeIn: string | null }): Tx<Job[]> {
  const where = args.madeIn === null ? '' : 'WHERE j.made_in = ?';
  const rows = yield* query(
    `${SELECT_JOB} ${where} ORDER BY j.next_at IS NULL, j.next_at, j.created_at, j.id LIMIT ${MOST_LISTED}`,
    ...(args.madeIn === null ? [] : [args.madeIn]),
  );
  return rows.map(toJob);
}

/** One job by its name, its id or a beginning of it. Throws `job_not_found` and `job_ambiguous`. */
export function* findJob(ctx: TxContext, args: { idOrName: string; madeIn: string | null }): Tx<Job> {
  const word = args.idOrName;
  const jobs = yield* listJobs(ctx, { madeIn: args.madeIn });
  const named = jobs.filter(({ id, name }) => id === word || name === word);
  const found =
    named.length > 0
      ? named
      : jobs.filter(({ id }) => word !== '' && (id.startsWith(word) || id.startsWith(`job_${word}`)));
  const [job] = found;
  if (job === undefined) {
    const nearest = nearestName(
      word,
      jobs.map(({ id, name }) => name ?? id),
    );
    const hint = nearest === '' ? 'there are no jobs' : `did you mean "${nearest}"?`;
    throw new MoiraiError('job_not_found', `there is no job "${word}"; ${hint}`, { details: { nearest } });
  }
  if (found.length > 1) {
    const ids = found.map(({ id }) => id).join(', ');
    throw new MoiraiError('job_ambiguous', `"${word}" may be any of ${ids}`);
  }
  return job;
}

/** What is due, the longest first, by the store's clock. */
export function* dueJobs(ctx: TxContext, args: { limit: number }): Tx<{ now: number; jobs: Job[] }> {
  const rows = yield* query(`${SELECT_JOB} WHERE j.next_at <= ? ORDER BY j.next_at, j.id LIMIT ?`, ctx.now, args.limit);
  return { now: ctx.now, jobs: rows.map(toJob) };
}

/** When there is something to do next, by the store's clock. */
export function* nextTick(ctx: TxContext, _args: Record<never, never>): Tx<{ now: number; at: number | null }> {
  const row = yield* queryOne('SELECT min(next_at) AS at FROM jobs WHERE next_at IS NOT NULL');
  return { now: ctx.now, at: row === undefined ? null : nullableNumber(row, 'at') };
}

export type ClaimArgs = Pick<ReceiveArgs, 'context' | 'conversation' | 'text' | 'turnId' | 'newSessionId'> & {
  readonly title: string;
  readonly jobId: string;
  /** The time it is due at: the claim holds only while the job says the same. */
  readonly tickAt: number;
  readonly nextAt: number | null;
};

export type Claimed =
  /** Its session has begun, with its turn waiting. */
  | { readonly type: 'run'; readonly received: Received }
  /** The last run is still under way: this tick is left out. */
  | { readonly type: 'busy'; readonly sessionId: string };

/**
 * Takes a due tick for an instance: the job moves on, and a session of the run's own starts with the prompt as its waiting
 * turn, all at once. Null when somebody else took it, or it is not due any more. A process that dies from here on leaves
 * an attached session behind, which is ended for it: the tick is never run again.
 */
export function* claimTick(ctx: TxContext, args: ClaimArgs): Tx<Claimed | null> {
  const { context, conversation, text, title, turnId, newSessionId, jobId, tickAt } = args;
  const originRef = `cron:${jobId}:${tickAt}`;
  const message = {
    context,
    conversation,
    text,
    title,
    turnId,
    newSessionId,
    originRef,
    by: 'system',
    begin: false,
  } as const;
  yield* enter(ctx, context);
  const run = yield* queryOne('SELECT session_id FROM job_runs WHERE job_id = ? AND tick_at = ?', jobId, tickAt);
  if (run !== undefined) {
    // The same claim again, whose answer was lost: its turn is known, and nothing is done twice.
    const own = textOf(run, 'session_id') === newSessionId;
    return own ? { type: 'run', received: yield* receive(ctx, message) } : null;
  }
  // Several try at once: who comes second waits for the row, and finds that the job has moved on.
  const moved = yield* query(
    'UPDATE jobs SET next_at = ? WHERE id = ? AND next_at = ? AND next_at <= ? RETURNING id',
    ...[args.nextAt, jobId, tickAt, ctx.now],
  );
  if (moved.length === 0) return null;
  yield* lockKey(ctx, conversation.key);
  const open = yield* queryOne("SELECT id FROM sessions WHERE key = ? AND state <> 'ended'", conversation.key);
  if (open !== undefined) return { type: 'busy', sessionId: textOf(open, 'id') };
  yield* query('INSERT INTO job_runs (session_id, job_id, tick_at) VALUES (?, ?, ?)', newSessionId, jobId, tickAt);
  return { type: 'run', received: yield* receive(ctx, message) };
}

const SELECT_JOB = `SELECT j.*, r.session_id, r.tick_at, s.state, s.end_reason FROM jobs j
  LEFT JOIN job_runs r ON r.job_id = j.id AND r.tick_at = (SELECT max(tick_at) FROM job_runs WHERE job_id = j.id)
  LEFT JOIN sessions s ON s.id = r.session_id`;

function madeIn(key: string | null): { sql: string; params: Param[] } {
  return key === null ? { sql: 'j.made_in IS NULL', params: [] } : { sql: 'j.made_in = ?', params: [key] };
}

function toJob(row: Row): Job {
  return {
    id: textOf(row, 'id'),
    name: nullableText(row, 'name'),
    schedule: textOf(row, 'schedule'),
    timezone: textOf(row, 'timezone'),
    prompt: textOf(row, 'prompt'),
    target: JSON.parse(textOf(row, 'target')) as JobTarget,
    madeIn: nullableText(row, 'made_in'),
    madeBy: nullableText(row, 'made_by'),
    createdAt: numberOf(row, 'created_at'),
    pausedAt: nullableNumber(row, 'paused_at'),
    nextAt: nullableNumber(row, 'next_at'),
    lastRun: toRun(row),
  };
}

function toRun(row: Row): JobRun | null {
  const sessionId = nullableText(row, 'session_id');
  if (sessionId === null) return null;
  return {
    sessionId,
    tickAt: numberOf(row, 'tick_at'),
    state: textOf(row, 'state') as SessionState,
    endReason: nullableText(row, 'end_reason') as EndReason | null,
  };
}
