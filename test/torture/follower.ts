import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode } from '../../src/errors/moirai-error.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/port.ts';
import { RULES } from './settings.ts';

const PAGE = 500;
const PAUSE_MS = 30;

/** Reads the whole log by its public numbers while it is written, as a stream of `/v1/events` does. */
export class Follower {
  /** Ids in the order in which they were read. */
  readonly ids: string[] = [];
  readonly #store: Store;
  readonly #following: Promise<void>;
  #after = 0;
  #stopped = false;

  private constructor(store: Store) {
    this.#store = store;
    this.#following = this.#follow();
    this.#following.catch(() => undefined); // `finish` throws it.
  }

  static async open(url: string, directory: string): Promise<Follower> {
    return new Follower(await openStore(url, directory, RULES));
  }

  /** Reads to the end of the log, then leaves. */
  async finish(): Promise<void> {
    this.#stopped = true;
    await this.#following;
    while (await this.#readPage());
    await this.#store.close();
  }

  async #follow(): Promise<void> {
    while (!this.#stopped) {
      const full = await this.#readPage();
      if (!full) await sleep(PAUSE_MS);
    }
  }

  /** True when more may follow at once. */
  async #readPage(): Promise<boolean> {
    try {
      const filter = { after: this.#after, limit: PAGE, types: [], sessionId: null };
      const { events, next } = await this.#store.read('listEvents', filter);
      for (const { event } of events) this.ids.push(event.id);
      this.#after = next;
      return events.length === PAGE;
    } catch (thrown) {
      // The server was crashed: the same page is asked for again.
      if (hasCode(thrown, 'store_unreachable', 'store_outcome_unknown')) return false;
      throw thrown;
    }
  }
}
