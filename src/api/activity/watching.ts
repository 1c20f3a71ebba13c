import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Within } from '../../lifecycle/namespace.ts';
import type { ApiParts } from '../api.ts';
import { frame, HEARTBEAT, type Listener } from '../event-stream.ts';
import type { ActivityTracker } from './tracker.ts';

/** How often a quiet stream says that it lives: a page should notice within seconds that the gateway is gone. */
const HEARTBEAT_MS = 2000;
/** What other processes do, and the steps of a turn, are looked for; commits of this process are heard of. */
const POLL_MS = 200;
/** Commits come in crowds: one look for all of them. */
const SETTLE_MS = 25;
const RETRY_MS = 1000;

/**
 * Streams changes to clients. Each gets what has changed since it last took something: a slow client gets fewer and
 * bigger deltas, and nothing piles up for it.
 */
export class ActivityWatch {
  readonly #parts: ApiParts;
  readonly #tracker: ActivityTracker;
  #watchers = 0;
  #running = false;
  #wakers = new Set<() => void>();
  #hear: () => void = () => undefined;
  /** The last delta, which most watchers share. */
  #lastDelta: { readonly since: number; readonly change: number; readonly text: string } | null = null;

  constructor(parts: ApiParts, tracker: ActivityTracker) {
    this.#parts = parts;
    this.#tracker = tracker;
    parts.closing.addEventListener('abort', () => this.#hear());
  }

  /** All that goes on, or what has changed since a number of the log; then what changes, until the listener has gone. */
  async *follow(after: number | null, within: Within, listener: Listener): AsyncGenerator<string> {
    await this.#tracker.look();
    this.#watchers += 1;
    void this.#run();
    try {
      let seen = this.#tracker.change;
      yield this.#opening(after, within);
      while (!listener.signal.aborted) {
        if (this.#tracker.change === seen) await this.#change(listener.signal);
        if (listener.signal.aborted) return;
        const text = this.#tracker.change === seen ? HEARTBEAT : this.#since(seen, within);
        seen = this.#tracker.change;
        yield text;
      }
    } finally {
      this.#watchers -= 1;
    }
  }

  #opening(after: number | null, within: Within): string {
    const { seq } = this.#tracker;
    const delta = after === null ? null : this.#tracker.deltaSinceSeq(after, within);
    if (delta !== null) return frame(delta, { event: 'delta', id: seq });
    const body = Buffer.concat(this.#tracker.snapshot(within).parts).toString();
    return frame(body, { event: 'snapshot', id: seq });
  }

  #since(since: number, within: Within): string {
    const { change, seq } = this.#tracker;
    if (within !== null) return frame(this.#tracker.deltaSince(since, within), { event: 'delta', id: seq });
    if (this.#lastDelta?.since === since && this.#lastDelta.change === change) return this.#lastDelta.text;
    const text = frame(this.#tracker.deltaSince(since, null), { event: 'delta', id: seq });
    this.#lastDelta = { since, change, text };
    return text;
  }

  /** Until something has changed, or it is time to say that one is still here. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, HEARTBEAT_MS);
      this.#wakers.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  /** Looks for as long as a client watches. */
  async #run(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    const unlisten = this.#parts.engine.store.onCommit(() => this.#hear());
    while (this.#watchers > 0 && !this.#parts.closing.aborted) {
      const before = this.#tracker.change;
      const pause = await this.#look();
      if (this.#tracker.change !== before) for (const wake of this.#wakers) wake();
      await this.#pause(pause);
    }
    unlisten();
    this.#running = false;
  }

  async #look(): Promise<number> {
    try {
      await this.#tracker.look();
      return POLL_MS;
    } catch (thrown) {
      if (!this.#parts.closing.aborted) {
        this.#parts.log.warn('what goes on could not be read; trying again', { error: MoiraiError.wrap(thrown) });
      }
      return RETRY_MS;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#hear = () => {
        this.#hear = () => undefined;
        clearTimeout(timer);
        setTimeout(resolve, SETTLE_MS);
      };
    });
  }
}
