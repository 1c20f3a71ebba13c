import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import type { Session } from '../lifecycle/session.ts';
import { buildKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import type { Platform } from '../platforms/platform.ts';
import { processTimers } from '../queue/timers.ts';
import { isUnreadable } from '../store/table.ts';
import type { Received } from '../store/transactions/conversations.ts';
import { jobNote, jobPassedOverText, jobSkippedText } from '../turns/texts.ts';
import type { Turns } from '../turns/turns.ts';
import { type JobResultsDeps, tellResult, tellTarget } from './job-results.ts';
import type { JobService } from './job-service.ts';
import type { DueJob, Job, JobTarget } from './job-store.ts';
import { namedTarget } from './job-targets.ts';
import { jobTitle } from './job-view.ts';
import { originOf, runOf } from './run-origin.ts';
import { Scheduler } from './scheduler.ts';

/** How long a stop waits for the store to take the end of a run. */
const STOP_GRACE_MS = 5000;

/** The chat platforms, as far as jobs need them. */
export interface ChatPlaces {
  find(name: string): Platform | null;
  /** Whether a session's person may still talk. */
  admits(
    session: Pick<Session, 'kind' | 'platform' | 'origin' | 'key'>,
    speaker: { readonly userId: string | null },
  ): Promise<boolean>;
}

export interface CronDeps {
  readonly config: Pick<Config, 'cron' | 'sessions'>;
  readonly engine: Engine;
  readonly log: Logger;
  readonly jobs: JobService;
  readonly turns: Turns;
  readonly chat: ChatPlaces;
  /** Whether this process does what is due: a terminal beside a gateway leaves that to it. */
  readonly primary: boolean;
}

/** Runs jobs at their time: each run is a session of its own, and the subscriber of its end sends the result. */
export class JobRuns {
  readonly jobs: JobService;
  readonly #deps: CronDeps;
  readonly #scheduler: Scheduler;
  readonly #results: JobResultsDeps;

  constructor(deps: CronDeps) {
    const { engine, log } = deps;
    this.#deps = deps;
    this.#results = { engine, log, platform: (name) => deps.chat.find(name) };
    this.#scheduler = new Scheduler({
      ...{ engine, log },
      random: Math.random,
      timers: processTimers,
      mayRun: (job) => this.#mayRun(job),
      promptOf: (job) => `${jobNote(jobTitle(job))}\n\n${job.prompt}`,
      run: (received) => this.#run(received),
      skipped: (job, sessionId) => this.#skipped(job, sessionId),
      passedOver: (tick, why, then) => this.#passedOver(tick, jobPassedOverText(why, then)),
    });
    this.jobs = deps.jobs;
  }

  /** Takes what is due from now on, unless the configuration says not to. */
  start(): void {
    if (this.#deps.primary && this.#deps.config.cron.enabled) this.#scheduler.start();
  }

  /** Takes nothing more; what runs goes on. */
  pause(): Promise<void> {
    return this.#scheduler.pause();
  }

  /** Resolves when the sessions of all runs have ended. */
  idle(): Promise<void> {
    return this.#scheduler.idle(STOP_GRACE_MS);
  }

  /** Takes what is due now; false while nothing is taken. */
  startDue(): Promise<boolean> {
    return this.#scheduler.startDue();
  }

  /** Where results go, as an operator names it. */
  target(text: string): Promise<JobTarget> {
    const { engine, config } = this.#deps;
    return namedTarget(text, { store: engine.store, rules: config.sessions });
  }

  /** The session of a run has ended, here or elsewhere. */
  ended(session: Session, eventId: string): Promise<void> {
    return tellResult(this.#results, session, eventId);
  }

  /**
   * A run waits for its place among all turns: no person waits for it, and all jobs that are due at nine would otherwise
   * ask a model server at once, in the way of people.
   */
  async #run({ session, turn }: Received): Promise<void> {
    const { engine, turns } = this.#deps;
    const over = turns.channels.open(turn.id).ended;
    turns.wake(session.id);
    const done = (await over)?.outcome === 'done';
    const reason = done ? 'cron_complete' : 'cron_failed';
    await engine.settle((context) => engine.end(session.id, { reason, trigger: 'process' }, context));
  }

  /** Logged once for as long as the run takes that is in the way. */
  async #skipped(job: Job, sessionId: string): Promise<void> {
    const session = await this.#deps.engine.store.read('getSession', { sessionId });
    const run = session === null ? null : runOf(session);
    if (session === null || run === null) return;
    await tellTarget(this.#results, session, { run, text: jobSkippedText(jobTitle(job)), id: `${sessionId}:skipped` });
  }

  /** It is a run that failed, so that it is in the lists and told like one; the home channel hears what has no target. */
  async #passedOver({ job, tickAt }: DueJob, why: string): Promise<void> {
    const { engine } = this.#deps;
    const target: JobTarget = isUnreadable(job.target) ? { to: 'home' } : job.target;
    const key = buildKey({ profile: 'main', platform: 'cron', type: 'dm', chat: `${job.id}-${tickAt}` });
    const origin = { ...originOf({ ...job, target }, tickAt), passed_over: why };
    const conversation = { key, kind: 'cron', platform: 'cron', userId: job.madeBy, origin, attached: true } as const;
    const { id } = await engine.start(conversation, { title: jobTitle(job) });
    await engine.appendBeside(id, [{ role: 'note', text: why, turnId: null }]);
    await engine.settle((context) => engine.end(id, { reason: 'cron_failed', trigger: 'process' }, context));
  }

  /** The jobs of a person who has lost access do not run. */
  async #mayRun({ target, madeIn, madeBy }: Job): Promise<boolean> {
    if (target.to !== 'place' || madeIn === null) return true;
    const { platform, target: origin } = target;
    return this.#deps.chat.admits({ kind: 'chat', platform, origin, key: madeIn }, { userId: madeBy });
  }
}
