import type { Timers } from '../events/timers.ts';
import type { Store } from '../store/port.ts';

const DAY_MS = 86_400_000;
const BETWEEN_LOOKS_MS = 3_600_000;

/** The name under which a plugin's observers are in the store. */
export function subscriberOf(plugin: string): string {
  return `plugin:${plugin}`;
}

/**
 * Takes back the subscriptions of plugins that were removed, or that want to hear nothing any more: not before that has
 * been so for a day, as seen by this process, and not while another process on the same store serves it, which shows in
 * that nothing undelivered is a day old.
 */
export class RemovedPlugins {
  readonly #store: Store;
  readonly #timers: Timers;
  readonly #missingSince = new Map<string, number>();
  #lastLook = Number.NEGATIVE_INFINITY;

  constructor(store: Store, timers: Timers) {
    this.#store = store;
    this.#timers = timers;
  }

  async tidy(listening: readonly string[], now: number = Date.now()): Promise<void> {
    const elapsed = this.#timers.elapsed();
    if (elapsed - this.#lastLook < BETWEEN_LOOKS_MS) return;
    this.#lastLook = elapsed;
    const present = new Set(listening.map(subscriberOf));
    for (const name of present) this.#missingSince.delete(name);
    for (const { name, oldestPendingAt } of await this.#store.read('listSubscribers', {})) {
      if (!name.startsWith(subscriberOf('')) || present.has(name)) continue;
      const since = this.#missingSince.get(name) ?? elapsed;
      this.#missingSince.set(name, since);
      const unserved = oldestPendingAt !== null && now - oldestPendingAt > DAY_MS;
      if (!unserved || elapsed - since < DAY_MS) continue;
      await this.#store.write('unsubscribe', { name });
      this.#missingSince.delete(name);
    }
  }
}
