import type { Logger } from '../log/logger.ts';
import { repeat, type Timers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';

const POLL_MS = 500;
const PAGE = 200;

/**
 * Hears of every session that ends, wherever it ended, as long as this process lives: for what only this process holds
 * (a running turn, open tools). What must be heard in any case is a subscriber's business, not this one's.
 */
export class EndedSessions {
  readonly #store: Store;
  readonly #timers: Timers;
  readonly #log: Logger;
  readonly #ended: (sessionId: string) => void;
  #after: number | null = null;
  #stop: () => void = () => undefined;

  constructor(store: Store, timers: Timers, log: Logger, ended: (sessionId: string) => void) {
    this.#store = store;
    this.#timers = timers;
    this.#log = log;
    this.#ended = ended;
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
        types: ['session:end'],
        sessionId: null,
        limit: PAGE,
      });
      for (const { event } of page.events) if (event.session_id !== null) this.#ended(event.session_id);
      after = page.next;
      full = page.events.length === PAGE;
    }
    // Up to here nobody else ended: to begin behind the last end would read all that was said since, again and again.
    this.#after = Math.max(after, upTo);
  }
}
