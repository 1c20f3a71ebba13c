import type { Timers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';

const DAY_MS = 86_400_000;
const BETWEEN_LOOKS_MS = 3_600_000;

/**
 * Takes back the subscriptions of those who were removed: a hook whose folder is gone, a memory that is not configured
 * any more. Not before one has been missing for a day, as seen by this process, and not while somebody else (a gateway
 * with another home on the same store) still serves it: whom somebody serves has nothing undelivered that is a day old.
 */
export class RemovedSubscribers {
  readonly #store: Store;
  readonly #timers: Timers;
  readonly #isOurs: (name: string) => boolean;
  readonly #missingSince = new Map<string, number>();
  #lastLook = Number.NEGATIVE_INFINITY;

  /** `isOurs` tells whose subscriptions are looked at, by their names. */
  constructor(store: Store, timers: Timers, isOurs: (name: string) => boolean) {
    this.#store = store;
    this.#timers = timers;
    this.#isOurs = isOurs;
  }

  /** `present` are the names of those who are there. */
  async tidy(present: readonly string[], now: number = Date.now()): Promise<void> {
    const elapsed = this.#timers.elapsed();
    if (elapsed - this.#lastLook < BETWEEN_LOOKS_MS) return;
    this.#lastLook = elapsed;
    for (const name of present) this.#missingSince.delete(name);
    for (const { name, oldestPendingAt } of await this.#store.read('listSubscribers', {})) {
      if (!this.#isOurs(name) || present.includes(name)) continue;
      const since = this.#missingSince.get(name) ?? elapsed;
      this.#missingSince.set(name, since);
      const unserved = oldestPendingAt !== null && now - oldestPendingAt > DAY_MS;
      if (!unserved || elapsed - since < DAY_MS) continue;
      await this.#store.write('unsubscribe', { name });
      this.#missingSince.delete(name);
    }
  }
}
