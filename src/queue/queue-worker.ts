import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { Claimed, ClaimRequest, LaneClaim } from '../store/transactions/queue.ts';
import type { CommandContext } from '../store/transactions/sessions.ts';
import type { ClaimRegistry } from './claim-registry.ts';
import { retryUntilKnown } from './retry-until-known.ts';
import type { Timers } from './timers.ts';

/** What a worker needs of its process; shared by all workers. */
export interface QueueDeps {
  readonly timers: Timers;
  readonly random: () => number;
  /** A fresh command id under this process's lease. */
  readonly commandContext: () => CommandContext;
  readonly claims: ClaimRegistry;
  /** Something went wrong that is tried again. */
  readonly failed: (error: MoiraiError) => void;
}

/** One queue, and what is done with its lanes. */
export interface QueueSpec<L extends LaneClaim> {
  readonly queue: string;
  /** Lanes worked on at the same time. */
  readonly concurrency: number;
  /** How many of them make sense now, where that changes. */
  readonly capacity?: () => Capacity;
  readonly claim: (request: ClaimRequest) => Promise<Claimed<L>>;
  /** Does the work of a lane in order, and settles it. What is left unsettled is released by `Engine.reconcile`. */
  readonly process: (lane: L, work: LaneWork) => Promise<void>;
}

export interface Capacity {
  /** Lanes at the same time; 0 for none. */
  readonly lanes: number;
  /** When to ask again, if there are none. */
  readonly againInMs: number;
}

export interface LaneWork {
  /** Aborted when the process stops and cannot wait any longer: give the lane back as it is. */
  readonly stopping: AbortSignal;
  /** Settles the lane, or a part of it: repeated until the store says what came of it. */
  settle<T>(write: (context: CommandContext) => Promise<T>): Promise<T>;
}

/** Other processes put work into a queue too, and a hint may be lost: the store is asked at least so often. */
const POLL_MS = 1000;
/** Between two looks at lanes that are due and may not be taken yet. */
const SHORTEST_SLEEP_MS = 20;
const STOP_GRACE_MS = 2000;

/**
 * Serves one queue: claims its due lanes with a token, has each worked on, and sees to it that it is settled. A lane
 * that fails waits by itself; the others go on.
 */
export class QueueWorker<L extends LaneClaim> {
  readonly #spec: QueueSpec<L>;
  readonly #deps: QueueDeps;
  #inFlight = 0;
  #claiming = false;
  #woken = false;
  #stopped = false;
  /** Kept until a claim is answered: asking again with the same token finds the lanes of a lost answer. */
  #claimToken: string | null = null;
  /** The last claim took every free place: there may be more. */
  #full = false;
  #cancelTimer: () => void = () => undefined;
  readonly #idle = new Set<() => void>();
  readonly #stopping = new AbortController();

  constructor(spec: QueueSpec<L>, deps: QueueDeps) {
    this.#spec = spec;
    this.#deps = deps;
  }

  /** There may be something to do. Cheap, and safe to call at any time. */
  wake(): void {
    this.#woken = true;
    if (!this.#claiming && !this.#stopped) void this.#claimAll();
  }

  /** Does what is due now; resolves when nothing is under way. */
  async runDue(): Promise<void> {
    this.wake();
    await this.#untilIdle();
  }

  /**
   * Claims nothing more and lets the work under way finish for a while. What is not done by then is given back
   * uncounted, for the next start.
   */
  async stop(graceMs = STOP_GRACE_MS): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    const cancel = this.#deps.timers.after(graceMs, () => this.#stopping.abort());
    await this.#untilIdle();
    cancel();
    // Nobody asks again under this token: what it may have claimed is a stray.
    if (this.#claimToken !== null) this.#deps.claims.claimed(this.#claimToken, []);
  }

  async #untilIdle(): Promise<void> {
    while (this.#inFlight > 0 || this.#claiming) await new Promise<void>((done) => this.#idle.add(done));
  }

  async #claimAll(): Promise<void> {
    this.#claiming = true;
    let wait = POLL_MS;
    try {
      while (this.#woken && !this.#stopped && this.#inFlight < this.#spec.concurrency) {
        this.#woken = false;
        wait = await this.#claim();
      }
    } catch (thrown) {
      if (hasCode(thrown, 'store_closed')) this.#stopped = true;
      else this.#deps.failed(MoiraiError.wrap(thrown));
    } finally {
      this.#claiming = false;
      this.#tellIdle();
    }
    // A place came free, or work arrived, while the last claim was under way.
    if (this.#woken && this.#inFlight < this.#spec.concurrency) this.#sleep(0);
    else this.#sleep(wait);
  }

  /** Returns how long to sleep when nobody calls. */
  async #claim(): Promise<number> {
    const { queue, concurrency, capacity } = this.#spec;
    const { lanes: most, againInMs } = capacity?.() ?? { lanes: concurrency, againInMs: 0 };
    const free = Math.min(most, concurrency) - this.#inFlight;
    if (free <= 0) return Math.max(SHORTEST_SLEEP_MS, againInMs);
    const context = this.#deps.commandContext();
    const again = this.#claimToken !== null;
    const token = this.#claimToken ?? context.commandId;
    this.#claimToken = token;
    this.#deps.claims.begin(token);
    // Half of the places stay free of lanes that failed before: what always fails cannot crowd out what works.
    const retries = Math.max(1, Math.floor(concurrency / 2) - this.#inFlight);
    const { lanes, nextDueInMs } = await this.#spec.claim({ context, queue, token, again, limit: free, retries });
    this.#claimToken = null;
    this.#deps.claims.claimed(token, lanes);
    for (const lane of lanes) void this.#process(lane);
    this.#full = lanes.length >= free;
    return nextDueInMs === null ? POLL_MS : Math.min(POLL_MS, Math.max(SHORTEST_SLEEP_MS, nextDueInMs));
  }

  async #process(lane: L): Promise<void> {
    this.#inFlight++;
    try {
      await this.#spec.process(lane, {
        stopping: this.#stopping.signal,
        settle: (write) => this.#settle(write),
      });
    } catch (thrown) {
      this.#deps.failed(MoiraiError.wrap(thrown));
    } finally {
      this.#deps.claims.done(lane);
      this.#inFlight--;
      this.#tellIdle();
      // Otherwise the write that adds to a lane, or the timer of its retry, wakes this worker.
      if (this.#full) this.wake();
    }
  }

  #settle<T>(write: (context: CommandContext) => Promise<T>): Promise<T> {
    const { timers, random, failed } = this.#deps;
    const context = this.#deps.commandContext();
    const stopped = (): boolean => this.#stopping.signal.aborted;
    return retryUntilKnown(() => write(context), { timers, random, failed, stopped });
  }

  #sleep(ms: number): void {
    this.#cancelTimer();
    if (!this.#stopped) this.#cancelTimer = this.#deps.timers.after(ms, () => this.wake());
  }

  #tellIdle(): void {
    if (this.#inFlight > 0 || this.#claiming) return;
    for (const done of this.#idle) done();
    this.#idle.clear();
  }
}
