import { MoiraiError } from '../errors/moirai-error.ts';
import { nearestName } from '../lifecycle/events.ts';
import type { EndReason, SessionState } from '../lifecycle/states.ts';
import {
  integer,
  json,
  nullableInteger,
  nullableText,
  nullableWord,
  type RowOf,
  selectValues,
  Table,
  text,
} from '../store/table.ts';
import { storableText } from '../store/text.ts';
import { query, type Tx, type TxContext } from '../store/transaction.ts';
import { type ReceiveArgs, type Received, receive } from '../store/transactions/conversations.ts';
import {
  type ClaimRequest,
  claimLanes,
  holdsClaim,
  type LaneClaim,
  removeLane,
  scheduleLane,
  settleLane,
} from '../store/transactions/queue.ts';
import { type CommandContext, enter, lockKey } from '../store/transactions/sessions.ts';

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

const columns = {
  id: text,
  name: nullableText,
  /** A text that `src/cron/schedule.ts` reads. */
  schedule: text,
  timezone: text,
  prompt: text,
  target: json<JobTarget>(),
  /** The key of the conversation it was made in; null for what an operator made. */
  madeIn: nullableText,
  madeBy: nullableText,
  createdAt: integer,
  pausedAt: nullableInteger,
};

const JOBS = new Table('jobs', columns);

/** Something that is done when its time comes. */
export interface Job extends RowOf<typeof JOBS> {
  /** Null while it is paused, and when there is nothing left to do. */
  readonly nextAt: number | null;
  readonly lastRun: JobRun | null;
}

/** Jobs beside their lanes and their newest runs. */
const JOBS_WITH_RUNS = new Table(
  `(SELECT j.*, l.next_no AS next_at, r.session_id, r.tick_at, s.state, s.end_reason FROM jobs j
    LEFT JOIN lanes l ON l.queue = 'ticks' AND l.key = j.id
    LEFT JOIN job_runs r ON r.job_id = j.id AND r.tick_at = (SELECT max(tick_at) FROM job_runs WHERE job_id = j.id)
    LEFT JOIN sessions s ON s.id = r.session_id) job`,
  {
    ...columns,
    nextAt: nullableInteger,
    sessionId: nullableText,
    tickAt: nullableInteger,
    state: nullableWord<SessionState>(),
    endReason: nullableWord<EndReason>(),
  },
);

export type NewJob = Omit<Job, 'createdAt' | 'pausedAt' | 'nextAt' | 'lastRun'> & { readonly nextAt: number };

/** So many a conversation may have. What is made by machines needs a bound. */
const MOST_JOBS = 100;
const MOST_LISTED = 1000;

/** Throws `bad_input` where the maker has one of that name, or too many. */
export function* addJob(ctx: TxContext, job: NewJob): Tx<Job> {
  yield* lockKey(ctx, `jobs:${job.madeIn ?? ''}`);
  const own =
    job.madeIn === null
      ? yield* JOBS.select('WHERE made_in IS NULL')
      : yield* JOBS.select('WHERE made_in = ?', job.madeIn);
  if (job.name !== null && own.some(({ name }) => name === job.name)) {
    throw new MoiraiError('bad_input', `there is a job called "${job.name}" already`);
  }
  if (job.madeIn !== null && own.length >= MOST_JOBS) {
    throw new MoiraiError('bad_input', `this conversation has ${own.length} jobs already; remove one first`);
  }
  const row = { ...job, createdAt: ctx.now, pausedAt: null };
  yield [JOBS.insert(row), scheduleLane(ctx, TICKS, job.id, job.nextAt)];
  return { ...row, lastRun: null };
}

/** Takes a job out; what runs of it goes on to its end. False when there was none. */
export function* removeJob(_ctx: TxContext, args: { id: string }): Tx<boolean> {
  const gone = yield* query('DELETE FROM jobs WHERE id = ? RETURNING id', args.id);
  yield [removeLane(TICKS, args.id)];
  return gone.length > 0;
}

/** Sets when a job is due next; `paused` says whether that is all until it is resumed. Throws `job_not_found`. */
export function* scheduleJob(ctx: TxContext, args: { id: string; nextAt: number | null; paused: boolean }): Tx<Job> {
  const known = yield* query(
    'UPDATE jobs SET paused_at = CASE WHEN ? = 1 THEN COALESCE(paused_at, ?) END WHERE id = ? RETURNING id',
    args.paused ? 1 : 0,
    ctx.now,
    args.id,
  );
  if (known.length === 0) throw new MoiraiError('job_not_found', `there is no job ${args.id} any more`);
  yield [args.nextAt === null ? removeLane(TICKS, args.id) : scheduleLane(ctx, TICKS, args.id, args.nextAt)];
  const job = yield* jobById(args.id);
  if (job === undefined) throw new MoiraiError('internal', `job ${args.id} is gone in the middle of its own change`);
  return job;
}

/** Those of one conversation; all of them for an operator, with null. The next due comes first. */
export function* listJobs(_ctx: TxContext, args: { madeIn: string | null }): Tx<Job[]> {
  const order = `ORDER BY next_at IS NULL, next_at, created_at, id LIMIT ${MOST_LISTED}`;
  const rows =
    args.madeIn === null
      ? yield* JOBS_WITH_RUNS.select(order)
      : yield* JOBS_WITH_RUNS.select(`WHERE made_in = ? ${order}`, args.madeIn);
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

/** The store's clock, by which jobs are due. */
// biome-ignore lint/correctness/useYield: the clock is all that is asked for.
export function* storeTime(ctx: TxContext, _args: Record<never, never>): Tx<number> {
  return ctx.now;
}

/** The queue of ticks: the lane of a job is due at its next one, which is also the lane's number. */
export const TICKS = 'ticks';

/** A job that is due, claimed. */
export interface DueJob extends LaneClaim {
  readonly job: Job;
  readonly tickAt: number;
  readonly attempts: number;
  readonly now: number;
}

/** Claims jobs that are due. */
export function* claimTicks(ctx: TxContext, args: ClaimRequest): Tx<{ lanes: DueJob[]; nextDueInMs: number | null }> {
  yield* enter(ctx, args.context);
  const claimed = yield* claimLanes(ctx, args, true);
  const lanes: DueJob[] = [];
  for (const { queue, key, nextNo, attempts } of claimed.lanes) {
    const job = yield* jobById(key);
    if (job === undefined) yield [removeLane(queue, key)];
    else lanes.push({ queue, key, token: args.token, job, tickAt: nextNo, attempts, now: ctx.now });
  }
  return { lanes, nextDueInMs: claimed.nextDueInMs };
}

export type StartRunArgs = Pick<ReceiveArgs, 'context' | 'conversation' | 'text' | 'turnId' | 'newSessionId'> & {
  readonly title: string;
  readonly jobId: string;
  readonly token: string;
  readonly tickAt: number;
  /** When the job is due after this; null for never. */
  readonly nextAt: number | null;
};

export type StartedRun =
  /** Its session has begun, with its turn waiting. */
  | { readonly type: 'run'; readonly received: Received }
  /** The last run is still under way: this tick is left out. */
  | { readonly type: 'busy'; readonly sessionId: string };

/**
 * Settles a claimed tick by starting its run: the job moves on to its next tick, and a session of the run's own starts
 * with the prompt as its waiting turn, all at once. Null when the claim is no longer the caller's. A process that dies
 * from here on leaves an attached session behind, which is ended for it: the tick is never run again.
 */
export function* startRun(ctx: TxContext, args: StartRunArgs): Tx<StartedRun | null> {
  const { context, conversation, title, turnId, newSessionId, jobId, tickAt } = args;
  const originRef = `cron:${jobId}:${tickAt}`;
  const message = {
    context,
    conversation,
    text: args.text,
    title,
    turnId,
    newSessionId,
    originRef,
    by: 'system',
    begin: false,
  } as const;
  yield* enter(ctx, context);
  const run = yield* RUNS.selectOne('WHERE job_id = ? AND tick_at = ?', jobId, tickAt);
  // The same settlement again, whose answer was lost: its turn is known, and nothing is done twice.
  if (run?.sessionId === newSessionId) {
    return { type: 'run', received: yield* receive(ctx, message) };
  }
  // The lock of the conversation comes before the lane's, as everywhere.
  yield* lockKey(ctx, conversation.key);
  if (!(yield* moveOn(ctx, args)) || run !== undefined) return null;
  const [open] = yield* selectValues(text, OPEN_SESSION, conversation.key);
  if (open !== undefined) return { type: 'busy', sessionId: open };
  yield [RUNS.insert({ sessionId: newSessionId, jobId, tickAt })];
  return { type: 'run', received: yield* receive(ctx, message) };
}

const OPEN_SESSION = "SELECT id FROM sessions WHERE key = ? AND state <> 'ended'";
const RUNS = new Table('job_runs', { sessionId: text, jobId: text, tickAt: integer });

/** Gives the lane of a job back, due at its next tick; false when the claim is lost. */
function* moveOn(ctx: TxContext, { jobId: key, token, nextAt }: StartRunArgs): Tx<boolean> {
  const claim = { queue: TICKS, key, token };
  if (!(yield* holdsClaim(ctx, claim))) return false;
  yield [nextAt === null ? removeLane(TICKS, key) : scheduleLane(ctx, TICKS, key, nextAt)];
  return true;
}

/** A tick that could not be taken is due again later, as often as it takes. */
export function* delayTick(
  ctx: TxContext,
  args: { context: CommandContext; lane: DueJob; afterMs: number; error: string },
): Tx<void> {
  yield* enter(ctx, args.context);
  const { tickAt: nextNo, attempts } = args.lane;
  const error = storableText(args.error, 'the error');
  const dueAt = ctx.now + args.afterMs;
  yield* settleLane(ctx, args.lane, { nextNo, dueAt, attempts: attempts + 1, waits: 0, error, done: false });
}

function* jobById(id: string): Tx<Job | undefined> {
  const row = yield* JOBS_WITH_RUNS.selectOne('WHERE id = ?', id);
  return row && toJob(row);
}

function toJob({ sessionId, tickAt, state, endReason, ...job }: RowOf<typeof JOBS_WITH_RUNS>): Job {
  const hasRun = sessionId !== null && tickAt !== null && state !== null;
  return { ...job, lastRun: hasRun ? { sessionId, tickAt, state, endReason } : null };
}
