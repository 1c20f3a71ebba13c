import type { Timers } from '../events/timers.ts';
import type { Store } from '../store/port.ts';

const DAY_MS = 86_400_000;
const BETWEEN_LOOKS_MS = 3_600_000;

/**
 * Takes back the subscriptions of hooks that were removed. Not before the folder has been missing for a day, as seen by
 * this process, and not while somebody else (a gateway with another home on the same store) still serves it: whom
 * somebody serves has nothing undelivered that is a day old.
 */
export class RemovedHooks {
  readonly #store: Store;
  readonly #timers: Timers;
  readonly #missingSince = new Map<string, number>();
  #lastLook = Number.NEGATIVE_INFINITY;

  constructor(store: Store, timers: Timers) {
    this.#store = store;
    this.#timers = timers;
  }

  async tidy(present: readonly string[], now: number = Date.now()): Promise<void> {
    const elapsed = this.#timers.elapsed();
    if (elapsed - this.#lastLook < BETWEEN_LOOKS_MS) return;
    this.#lastLook = elapsed;
    for (const name of present) this.#missingSince.delete(`hook:${name}`);
    for (const { name, oldestPendingAt } of await this.#store.read('listSubscribers', {})) {
      if (!name.startsWith('hook:') || present.includes(name.slice('hook:'.length))) continue;
      const since = this.#missingSince.get(name) ?? elapsed;
      this.#missingSince.set(name, since);
      const unserved = oldestPendingAt !== null && now - oldestPendingAt > DAY_MS;
      if (!unserved || elapsed - since < DAY_MS) continue;
      await this.#store.write('unsubscribe', { name });
      this.#missingSince.delete(name);
    }
  }
}
