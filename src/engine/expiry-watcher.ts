import { MoiraiError } from '../errors/moirai-error.ts';
import type { Timers } from '../queue/timers.ts';
import type { Engine } from './engine.ts';

/** At the latest after this long the store is asked again: another process may have written an earlier deadline. */
const LONGEST_SLEEP_MS = 30_000;
/** Clocks differ a little: a deadline that is due here and not yet in the store is tried again after this. */
const SHORTEST_SLEEP_MS = 20;

/** Batches at the same time: a server works on one while the next is being made. */
const LANES = { sqlite: 1, postgres: 2 } as const;

/**
 * Ends sessions when their deadline comes: one timer to the next one, not a walk over all. What fires together ends in
 * batches, with other work in between.
 */
export class ExpiryWatcher {
  readonly #engine: Engine;
  readonly #timers: Timers;
  readonly #wallClock: () => number;
  readonly #failed: (error: MoiraiError) => void;
  #unlisten: () => void = () => undefined;
  #cancelTimer: () => void = () => undefined;
  #armedFor = Number.POSITIVE_INFINITY;
  #sweeping: Promise<void> = Promise.resolve();
  #stopped = false;
  #busy = true;
  #earliest = Number.POSITIVE_INFINITY;

  constructor(engine: Engine, timers: Timers, wallClock: () => number, failed: (error: MoiraiError) => void) {
    this.#engine = engine;
    this.#timers = timers;
    this.#wallClock = wallClock;
    this.#failed = failed;
  }

  /** Ends what is overdue since before this process began, then watches. */
  async start(): Promise<void> {
    this.#unlisten = this.#engine.store.onCommit(({ nextDeadline }) => this.#hear(nextDeadline));
    await this.#sweep('startup');
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unlisten();
    this.#cancelTimer();
    await this.#sweeping;
  }

  /** While a sweep is under way its end arms the timer; what is heard meanwhile is remembered for that. */
  #hear(deadline: number | null): void {
    if (deadline === null) return;
    this.#earliest = Math.min(this.#earliest, deadline);
    if (!this.#busy && deadline < this.#armedFor) this.#arm(deadline);
  }

  #arm(deadline: number): void {
    this.#cancelTimer();
    if (this.#stopped) return;
    this.#armedFor = deadline;
    const wait = Math.min(deadline - this.#wallClock(), LONGEST_SLEEP_MS);
    this.#cancelTimer = this.#timers.after(Math.max(wait, SHORTEST_SLEEP_MS), () => {
      // One sweep at a time: the next begins where the last one ended.
      this.#sweeping = this.#sweeping.then(() => this.#sweep('watcher'));
    });
  }

  async #endDue(trigger: 'startup' | 'watcher'): Promise<void> {
    for (let more = true; more && !this.#stopped; ) {
      const batch = await this.#engine.expire(trigger);
      more = batch.more && batch.ended.length > 0;
    }
  }

  async #sweep(trigger: 'startup' | 'watcher'): Promise<void> {
    this.#busy = true;
    let next = Number.POSITIVE_INFINITY;
    try {
      await Promise.all(Array.from({ length: LANES[this.#engine.store.engine] }, () => this.#endDue(trigger)));
      this.#earliest = Number.POSITIVE_INFINITY;
      next = (await this.#engine.store.read('nextDeadline', {})) ?? next;
    } catch (thrown) {
      this.#failed(MoiraiError.wrap(thrown));
    }
    this.#busy = false;
    this.#arm(Math.min(next, this.#earliest));
  }
}
