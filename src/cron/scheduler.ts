import type { Engine } from '../engine/engine.ts';
import type { Timers } from '../queue/timers.ts';
import { buildKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import type { ConversationRef, Received } from '../store/transactions/conversations.ts';
import type { Job } from '../store/transactions/jobs.ts';
import { nextTickOf } from './job-service.ts';
import { jobTitle } from './job-view.ts';
import { originOf } from './run-origin.ts';

export interface SchedulerOptions {
  readonly engine: Engine;
  readonly timers: Timers;
  readonly log: Logger;
  /** Whether whoever made it may still have things done. */
  readonly mayRun: (job: Job) => Promise<boolean>;
  /** What the agent is told. */
  readonly promptOf: (job: Job) => string;
  /** Does what a run is for, to the end of its session. */
  readonly run: (received: Received, job: Job) => Promise<void>;
  /** A tick is left out, because a session of the last one is still at work. */
  readonly skipped: (job: Job, sessionId: string) => Promise<void>;
}

/** The store is asked at least so often: other processes make jobs too, and make them due. */
const LONGEST_SLEEP_MS = 1000;
const SHORTEST_SLEEP_MS = 20;
const BATCH = 100;

/**
 * Takes what is due, in this process or in one of many: the store gives each tick to one of them. Time is the store's. One
 * timer to the next tick, not a walk over all jobs.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #runs = new Set<Promise<void>>();
  #cancelTimer: () => void = () => undefined;
  #looking: Promise<void> | null = null;
  #again = false;
  #paused = true;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#paused = false;
    this.wake();
  }

  /** Takes nothing more; what runs goes on. */
  async pause(): Promise<void> {
    this.#paused = true;
    this.#cancelTimer();
    await this.#looking;
  }

  /** Resolves when every run is over and its session has ended. */
  async idle(): Promise<void> {
    await this.#looking;
    await Promise.all(this.#runs);
  }

  /** Resolves when what is due now has been taken. */
  async look(): Promise<void> {
    this.wake();
    while (this.#looking !== null) await this.#looking;
  }

  /** Looks now: something may be due. */
  wake(): void {
    if (this.#paused) return;
    if (this.#looking !== null) {
      this.#again = true;
      return;
    }
    this.#cancelTimer();
    this.#looking = this.#look()
      .catch((error: unknown) => {
        this.#options.log.warn('looking for due jobs failed; trying again', { error });
        return LONGEST_SLEEP_MS;
      })
      .then((sleepMs) => this.#rest(sleepMs));
  }

  #rest(sleepMs: number): void {
    this.#looking = null;
    if (this.#again) {
      this.#again = false;
      this.wake();
    } else if (!this.#paused) this.#cancelTimer = this.#options.timers.after(sleepMs, () => this.wake());
  }

  /** Takes what is due, and says after how long to look again. */
  async #look(): Promise<number> {
    const { store } = this.#options.engine;
    const { now, at } = await store.read('nextTick', {});
    if (at === null) return LONGEST_SLEEP_MS;
    if (at > now) return Math.max(Math.min(at - now, LONGEST_SLEEP_MS), SHORTEST_SLEEP_MS);
    return (await this.#takeAll()) ? SHORTEST_SLEEP_MS : LONGEST_SLEEP_MS;
  }

  /** False when something that is due could not be taken: it is tried again, and keeps nothing else waiting. */
  async #takeAll(): Promise<boolean> {
    const { now, jobs } = await this.#options.engine.store.read('dueJobs', { limit: BATCH });
    let all = true;
    for (const job of jobs) {
      if (this.#paused) break;
      await this.#take(job, now).catch((error: unknown) => {
        all = false;
        this.#options.log.warn('a due job was not taken; trying again', { job: job.id, error });
      });
    }
    return all;
  }

  async #take(job: Job, now: number): Promise<void> {
    const { engine, log, promptOf } = this.#options;
    const tickAt = job.nextAt ?? now;
    if (!(await this.#options.mayRun(job))) {
      log.warn('a job is paused: who made it is not let in any more', { job: job.id });
      await engine.store.write('scheduleJob', { id: job.id, nextAt: null, paused: true });
      return;
    }
    const claimed = await engine.claimTick({
      ...{ jobId: job.id, tickAt, nextAt: this.#nextAfter(job, now) },
      ...{ conversation: conversationOf(job, tickAt), text: promptOf(job), title: jobTitle(job) },
    });
    if (claimed === null) return;
    if (claimed.type === 'busy') {
      log.warn('a job is due while its last run is still under way; this one is left out', {
        ...{ job: job.id, session: claimed.sessionId },
      });
      this.#watch({ job: job.id, session: claimed.sessionId }, this.#options.skipped(job, claimed.sessionId));
    } else {
      const { session, turn } = claimed.received;
      this.#watch({ job: job.id, session: session.id, turn: turn.id }, this.#options.run(claimed.received, job));
    }
  }

  /** A job whose schedule cannot be read any more must not hold up the others. */
  #nextAfter(job: Job, now: number): number | null {
    try {
      return nextTickOf(job, now);
    } catch (error) {
      this.#options.log.error('the schedule of a job cannot be read; it is not run again', { job: job.id, error });
      return null;
    }
  }

  #watch(names: Readonly<Record<string, string>>, work: Promise<void>): void {
    const watched = work
      .catch((error: unknown) => this.#options.log.error('a run was not brought to its end', { ...names, error }))
      .finally(() => this.#runs.delete(watched));
    this.#runs.add(watched);
  }
}

/** All runs of a job are one conversation, of which one session is open at a time. They die with their process. */
function conversationOf(job: Job, tickAt: number): ConversationRef {
  const key = buildKey({ profile: 'main', platform: 'cron', type: 'dm', chat: job.id });
  const origin = originOf(job, tickAt);
  return { key, kind: 'cron', platform: 'cron', userId: job.madeBy, origin, attached: true };
}
