import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { buildKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import { type LaneWork, QueueWorker } from '../queue/queue-worker.ts';
import { backoff, isStoreTrouble } from '../queue/retry-until-known.ts';
import type { Timers } from '../queue/timers.ts';
import { isUnreadable } from '../store/table.ts';
import type { ConversationRef, Received } from '../store/transactions/conversations.ts';
import type { AfterPassedOver } from '../turns/texts.ts';
import { nextTickOf } from './job-service.ts';
import { type DueJob, type Job, TICKS } from './job-store.ts';
import { jobTitle } from './job-view.ts';
import { originOf } from './run-origin.ts';

export interface SchedulerOptions {
  readonly engine: Engine;
  readonly random: () => number;
  readonly timers: Timers;
  readonly log: Logger;
  /** Whether the person who made the job may still have things done. */
  readonly mayRun: (job: Job) => Promise<boolean>;
  /** The message that the agent gets. */
  readonly promptOf: (job: Job) => string;
  /** Does what a run is for, to the end of its session. */
  readonly run: (received: Received, job: Job) => Promise<void>;
  /** A tick is left out, because a session of the last one is still at work. */
  readonly skipped: (job: Job, sessionId: string) => Promise<void>;
  /** A tick is passed over, because it cannot be processed. */
  readonly passedOver: (tick: DueJob, why: string, then: AfterPassedOver) => Promise<void>;
}

/** Jobs whose runs are started at the same time; the runs themselves wait for their places among all turns. */
const CONCURRENCY = 16;
/** What the store does not take for now is tried for ever; anything else fails again. */
const MOST_ATTEMPTS = 3;
const RETRY_MS = 1000;
const RETRY_CAP_MS = 60_000;

/** Starts the runs of jobs that are due, in this process or in one of many: the queue gives each tick to one of them. */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #runs = new Set<Promise<void>>();
  #worker: QueueWorker<DueJob> | null = null;
  readonly #unlisten: () => void;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#unlisten = options.engine.store.onCommit(({ queues }) => {
      if (queues.has(TICKS)) this.#worker?.wake();
    });
  }

  start(): void {
    this.#worker ??= this.#makeWorker();
    this.#worker.wake();
  }

  /** Starts nothing more; what runs goes on. */
  async pause(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.stop();
  }

  /** Resolves when every run is over and its session has ended, or the store has not taken that for so long. */
  async idle(graceMs: number): Promise<void> {
    this.#unlisten();
    const grace = new Promise<void>((done) => this.#options.timers.after(graceMs, done));
    await Promise.race([Promise.all(this.#runs), grace]);
  }

  /** Resolves when what is due now has been started; with false before the start, and while it is paused. */
  async startDue(): Promise<boolean> {
    if (this.#worker === null) return false;
    await this.#worker.runDue();
    return true;
  }

  #makeWorker(): QueueWorker<DueJob> {
    const { engine, log } = this.#options;
    return new QueueWorker(
      {
        queue: TICKS,
        concurrency: CONCURRENCY,
        claim: (request) => engine.store.write('claimTicks', request),
        process: (tick, work) => this.#take(tick, work),
      },
      engine.queueDeps((error) => log.warn('the store did not take the run of a job; trying again', { error })),
    );
  }

  /** A tick that cannot be taken waits and is tried again; it keeps nothing else waiting. */
  async #take(tick: DueJob, work: LaneWork): Promise<void> {
    const unreadable = unreadablePart(tick);
    if (unreadable !== null) return this.#setAside(tick, work, `${unreadable} cannot be read`, true);
    try {
      await this.#start(tick);
    } catch (thrown) {
      const error = MoiraiError.wrap(thrown);
      const { message } = error;
      const { engine, random, log } = this.#options;
      if (isDefect(error) && tick.attempts + 1 >= MOST_ATTEMPTS) return this.#setAside(tick, work, message, false);
      log.warn('a due job was not started; trying again', { job: tick.job.id, error: thrown });
      const afterMs = backoff(tick.attempts + 1, RETRY_MS, RETRY_CAP_MS, random);
      await work.settle((context) => engine.store.write('delayTick', { context, lane: tick, afterMs, error: message }));
    }
  }

  /**
   * The tick is passed over and the job goes on with its next one; one that nobody can read is paused. That is told first:
   * a process that dies in between has it told twice rather than never.
   */
  async #setAside(tick: DueJob, work: LaneWork, error: string, paused: boolean): Promise<void> {
    const { engine, log, passedOver } = this.#options;
    const { job, tickAt, attempts, now } = tick;
    log.error('a due job was passed over', { job: job.id, error });
    const nextAt = paused ? null : nextTickOf(job, now);
    const then = paused ? 'paused' : nextAt === null ? 'over' : 'next';
    const told = passedOver(tick, error, then);
    this.#watch({ job: job.id }, told);
    await told.catch((thrown: unknown) => {
      // What the store does not take now is tried again, with the tick; what can never be told stops nothing.
      if (!isDefect(MoiraiError.wrap(thrown))) throw thrown;
    });
    const fields = { work: 'tick', id: `${job.id}:${tickAt}`, attempts: attempts + 1, error } as const;
    await engine.announce({ type: 'work:set_aside', fields });
    await work.settle(() => engine.store.write('scheduleJob', { id: job.id, nextAt, paused }));
  }

  async #start({ job, tickAt, now, token }: DueJob): Promise<void> {
    const { engine, log, promptOf } = this.#options;
    if (!(await this.#options.mayRun(job))) {
      log.warn('a job is paused: its maker has no access any more', { job: job.id });
      await engine.store.write('scheduleJob', { id: job.id, nextAt: null, paused: true });
      return;
    }
    const started = await engine.startRun({
      jobId: job.id,
      token,
      tickAt,
      nextAt: nextTickOf(job, now),
      conversation: conversationOf(job, tickAt),
      text: promptOf(job),
      title: jobTitle(job),
    });
    if (started === null) return;
    if (started.type === 'busy') {
      const names = { job: job.id, session: started.sessionId };
      log.warn('a job is due while its last run is still under way; this tick is left out', names);
      this.#watch(names, this.#options.skipped(job, started.sessionId));
    } else {
      const { session, turn } = started.received;
      this.#watch({ job: job.id, session: session.id, turn: turn.id }, this.#options.run(started.received, job));
    }
  }

  #watch(names: Readonly<Record<string, string>>, work: Promise<void>): void {
    const watched = work
      .catch((error: unknown) => this.#options.log.error('a run was not brought to its end', { ...names, error }))
      .finally(() => this.#runs.delete(watched));
    this.#runs.add(watched);
  }
}

/** It fails again however often it is tried. */
function isDefect(error: MoiraiError): boolean {
  return error.code === 'internal' || !isStoreTrouble(error);
}

/** What of a job cannot be read, and so never will be; null for a sound one. */
function unreadablePart({ job, now }: DueJob): string | null {
  if (isUnreadable(job.target)) return 'its row';
  try {
    nextTickOf(job, now);
    return null;
  } catch {
    return 'its schedule';
  }
}

/** All runs of a job are one conversation, of which one session is open at a time. They die with their process. */
function conversationOf(job: Job, tickAt: number): ConversationRef {
  const key = buildKey({ profile: 'main', platform: 'cron', type: 'dm', chat: job.id });
  const origin = originOf(job, tickAt);
  return { key, kind: 'cron', platform: 'cron', userId: job.madeBy, origin, attached: true };
}
