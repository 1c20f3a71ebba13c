import { abilitiesAt, measureAt } from '../platforms/abilities.ts';
import { type Place, type Platform, type ReplyContext, type ReplyStream, SendFailure } from '../platforms/platform.ts';
import { splitText } from '../platforms/split-text.ts';
import type { Timers } from '../queue/timers.ts';
import type { EditPace } from './edit-pace.ts';
import type { LiveHandle } from './live-reply-store.ts';

const SLOWEST_MS = 10_000;
const CALL_MS = 10_000;
/** Less than this is not worth a message that is changed at once. */
const LEAST_CHARS = 4;
/** A server that keeps saying no is left alone until the end. */
const MOST_STRIKES = 3;

export interface LiveReplyOptions {
  readonly platform: Platform;
  readonly place: Place;
  readonly timers: Timers;
  readonly pace: EditPace;
  /** Names it for good: the process that goes on with the turn shows the same one. */
  readonly key: string;
  /** The message that it answers. */
  readonly reply: ReplyContext | null;
  /** The message that it quotes. */
  readonly replyTo: string | null;
  /** What a process before this one has shown of it. */
  readonly kept: LiveHandle | null;
  /** Resolves when the handle is durable. */
  readonly keep: (handle: LiveHandle) => Promise<void>;
}

/**
 * A reply that grows while it is written: a stream of the platform's own, or one message that is sent once there is
 * something to read and changed from time to time. It is for looking at only; the reply itself goes through the outbox, and
 * takes the place of this one.
 */
export class LiveReply {
  readonly #options: LiveReplyOptions;
  readonly #abort = new AbortController();
  #text = '';
  #shown = '';
  #handle: LiveHandle | null;
  #stream: ReplyStream | null = null;
  /** The platform does not want to stream here: the message is changed instead. */
  #streamRefused = false;
  #everyMs: number;
  #strikes = 0;
  #closed = false;
  #cancel: (() => void) | null = null;
  #working: Promise<void> = Promise.resolve();

  constructor(options: LiveReplyOptions) {
    this.#options = options;
    this.#handle = options.kept;
    this.#everyMs = abilitiesAt(options.platform, options.place).editEveryMs;
  }

  show(text: string): void {
    this.#text = text;
    if (this.#closed || this.#cancel !== null || this.#strikes >= MOST_STRIKES) return;
    this.#cancel = this.#options.timers.after(this.#everyMs, () => {
      this.#working = this.#working.then(() => this.#flush()).finally(() => this.#next());
    });
  }

  /** Shows nothing more. What there is of it, if there is anything: the reply takes its place. */
  async close(): Promise<LiveHandle | null> {
    this.#closed = true;
    this.#cancel?.();
    // One that is on its way has to be known, or it would stay behind.
    await this.#working;
    return this.#handle;
  }

  /** A change that came while the last one was being shown. */
  #next(): void {
    this.#cancel = null;
    if (this.#text !== this.#shown) this.show(this.#text);
  }

  async #flush(): Promise<void> {
    const { platform, place, pace } = this.#options;
    const [visible = ''] = splitText(this.#text, measureAt(platform, place));
    if (this.#closed || visible.trim().length < LEAST_CHARS || visible === this.#shown) return;
    try {
      const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(CALL_MS)]);
      if (this.#isStreamed) await this.#append(visible, signal);
      else await this.#change(visible, signal);
      this.#shown = visible;
      pace.changed(platform, place);
    } catch (thrown) {
      this.#strikes++;
      const asked = thrown instanceof SendFailure ? (thrown.retryAfterMs ?? 0) : 0;
      this.#everyMs = Math.min(SLOWEST_MS, Math.max(this.#everyMs * 2, asked));
    }
  }

  get #isStreamed(): boolean {
    const { platform, place } = this.#options;
    if (this.#handle !== null) return 'stream' in this.#handle;
    return !this.#streamRefused && abilitiesAt(platform, place).streams === true;
  }

  async #append(text: string, signal: AbortSignal): Promise<void> {
    const stream = this.#stream ?? (await this.#openStream(signal));
    if (stream !== null) await stream.append(text, signal);
    else if (abilitiesAt(this.#options.platform, this.#options.place).edit) await this.#change(text, signal);
    else this.#strikes = MOST_STRIKES;
  }

  /** Null where the platform refuses: what it cannot stream it may still be able to change. */
  async #openStream(signal: AbortSignal): Promise<ReplyStream | null> {
    const { platform, place, key, reply } = this.#options;
    const opening = { key, ...(reply === null ? {} : { reply }) };
    try {
      this.#stream =
        this.#handle !== null && 'stream' in this.#handle
          ? (platform.resumeStream?.(place, this.#handle.stream) ?? null)
          : ((await platform.startStream?.(place, opening, signal)) ?? null);
    } catch (thrown) {
      if (!(thrown instanceof SendFailure) || thrown.retryAfterMs !== null) throw thrown;
    }
    if (this.#stream === null) this.#streamRefused = true;
    else await this.#keep({ stream: this.#stream.handle });
    return this.#stream;
  }

  async #change(text: string, signal: AbortSignal): Promise<void> {
    const { platform, place, key, reply, replyTo } = this.#options;
    if (this.#handle !== null && 'edit' in this.#handle) {
      await platform.edit?.(place, this.#handle.edit, { text }, signal);
      return;
    }
    const message = { text, key, ...(reply === null ? {} : { reply }), ...(replyTo === null ? {} : { replyTo }) };
    await this.#keep({ edit: (await platform.send(place, message, signal)).messageId });
  }

  /** Known here before it is known to the next process: whatever becomes of the write, it is there. */
  async #keep(handle: LiveHandle): Promise<void> {
    const before = this.#handle;
    this.#handle = handle;
    if (JSON.stringify(before) !== JSON.stringify(handle)) await this.#options.keep(handle);
  }
}
