import type { Logger } from '../log/logger.ts';
import { repeat, type Timers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';

const POLL_MS = 500;
const PAGE = 200;
const HEARD = ['session:end', 'session:suspend', 'session:release'] as const;
type HeardType = (typeof HEARD)[number];

/**
 * Hears of every session that ends, is parked or released, wherever that was done, as long as this process lives: for
 * what only this process holds (a running turn, open tools). What must be heard in any case is a subscriber's business, not this one's.
 */
export class EndedSessions {
  readonly #store: Store;
  readonly #timers: Timers;
  readonly #log: Logger;
  readonly #heard: (sessionId: string, type: HeardType) => void;
  #after: number | null = null;
  #stop: () => void = () => undefined;

  constructor(store: Store, timers: Timers, log: Logger, heard: (sessionId: string, type: HeardType) => void) {
    this.#store = store;
    this.#timers = timers;
    this.#log = log;
    this.#heard = heard;
  }

  start(): void {
    const failed = (error: unknown): void => this.#log.warn('reading the log failed; trying again', { error });
    this.#stop = repeat(this.#timers, POLL_MS, () => this.#look(), failed);
  }

  stop(): void {
    this.#stop();
  }

  async #look(): Promise<void> {
    const upTo = await this.#store.read('lastSeq', {});
    let after = this.#after ?? upTo;
    for (let full = true; full; ) {
      const page = await this.#store.read('listEvents', {
        after,
        types: HEARD,
        sessionId: null,
        limit: PAGE,
      });
      for (const { event } of page.events) {
        if (event.session_id !== null) this.#heard(event.session_id, event.type as HeardType);
      }
      after = page.next;
      full = page.events.length === PAGE;
    }
    // Up to here nobody else ended: to begin behind the last end would read all that was said since, again and again.
    this.#after = Math.max(after, upTo);
  }
}
