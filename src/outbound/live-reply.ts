import { type Place, type Platform, SendFailure } from '../platforms/platform.ts';
import { splitText } from '../platforms/split-text.ts';
import type { Timers } from '../queue/timers.ts';
import type { EditPace } from './edit-pace.ts';

const SLOWEST_MS = 10_000;
const CALL_MS = 10_000;
/** Less than this is not worth a message that is changed at once. */
const LEAST_CHARS = 4;
/** A server that keeps saying no is left alone until the end. */
const MOST_STRIKES = 3;

/**
 * A reply that grows while it is written: one message, sent once there is something to read and changed from time to
 * time. It is for looking at only; the reply itself goes through the outbox, and takes the place of this one.
 */
export class LiveReply {
  readonly #platform: Platform;
  readonly #place: Place;
  readonly #timers: Timers;
  readonly #pace: EditPace;
  readonly #abort = new AbortController();
  #text = '';
  #shown = '';
  #messageId: string | null = null;
  #everyMs: number;
  #strikes = 0;
  #closed = false;
  #cancel: (() => void) | null = null;
  #working: Promise<void> = Promise.resolve();

  constructor(platform: Platform, place: Place, timers: Timers, pace: EditPace) {
    this.#pace = pace;
    this.#platform = platform;
    this.#place = place;
    this.#timers = timers;
    this.#everyMs = platform.abilities.editEveryMs;
  }

  show(text: string): void {
    this.#text = text;
    if (this.#closed || this.#cancel !== null || this.#strikes >= MOST_STRIKES) return;
    this.#cancel = this.#timers.after(this.#everyMs, () => {
      this.#working = this.#working.then(() => this.#flush()).finally(() => this.#next());
    });
  }

  /** Shows nothing more. The message there is, if there is one: the reply takes its place. */
  async close(): Promise<string | null> {
    this.#closed = true;
    this.#cancel?.();
    // One that is on its way has to be known, or it would stay behind.
    await this.#working;
    return this.#messageId;
  }

  /** A change that came while the last one was being shown. */
  #next(): void {
    this.#cancel = null;
    if (this.#text !== this.#shown) this.show(this.#text);
  }

  async #flush(): Promise<void> {
    const [visible = ''] = splitText(this.#text, this.#platform.abilities);
    if (this.#closed || visible.trim().length < LEAST_CHARS || visible === this.#shown) return;
    try {
      const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(CALL_MS)]);
      if (this.#messageId === null) {
        this.#messageId = (await this.#platform.send(this.#place, { text: visible }, signal)).messageId;
      } else await this.#platform.edit?.(this.#place, this.#messageId, { text: visible }, signal);
      this.#shown = visible;
      this.#pace.changed(this.#platform, this.#place);
    } catch (thrown) {
      this.#strikes++;
      const asked = thrown instanceof SendFailure ? (thrown.retryAfterMs ?? 0) : 0;
      this.#everyMs = Math.min(SLOWEST_MS, Math.max(this.#everyMs * 2, asked));
    }
  }
}
