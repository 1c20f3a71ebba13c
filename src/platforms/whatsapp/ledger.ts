import { pause } from '../deadline.ts';
import type { PlatformRuntime } from '../platform.ts';
import { Recent } from '../recent.ts';

const MOST_KEYS = 5000;
const MOST_TEXTS = 1000;
const MOST_CHATS = 10_000;
const MOST_WORDS = 500;
/** So long after it was sent everybody knows that it was. */
const KEPT_AFTER_MS = 2000;

interface LastMessage {
  readonly messageId: string;
  readonly until: number;
}

/** What this process knows of what was said lately: nothing that matters depends on it alone. */
export class Ledger {
  readonly #runtime: Pick<PlatformRuntime, 'now' | 'after'>;
  /** What the server says has arrived, by key. */
  readonly #arrived = new Recent<string>(MOST_KEYS);
  /** What the server says has failed after all, by message. */
  readonly #failed = new Recent<true>(MOST_KEYS);
  readonly #underway = new Map<string, Promise<unknown>>();
  readonly #sentAt = new Recent<number>(MOST_KEYS);
  readonly #words = new Recent<string>(MOST_TEXTS);
  readonly #heard = new Recent<LastMessage>(MOST_CHATS);

  constructor(runtime: Pick<PlatformRuntime, 'now' | 'after'>) {
    this.#runtime = runtime;
  }

  /** The message of this key, if the server has told of it: a send whose answer was lost has arrived then. */
  arrived(key: string): string | undefined {
    return this.#arrived.get(key);
  }

  noteArrival(key: string, messageId: string): void {
    if (!this.#failed.has(messageId)) this.#arrived.set(key, messageId);
  }

  /** What failed has not arrived, whatever is told of it before and after that. */
  noteFailure(key: string, messageId: string): void {
    this.#failed.set(messageId, true);
    if (this.#arrived.get(key) === messageId) this.#arrived.delete(key);
  }

  /** Runs a send, and knows of it while it runs. */
  async track<T>(key: string, send: () => Promise<T>): Promise<T> {
    const sending = send();
    this.#underway.set(key, sending);
    try {
      const sent = await sending;
      this.#sentAt.set(key, this.#runtime.now());
      return sent;
    } finally {
      if (this.#underway.get(key) === sending) this.#underway.delete(key);
    }
  }

  /**
   * Resolves when whoever asked for the send can be expected to have kept that it was taken: that it failed afterwards
   * would mean nothing to them before.
   */
  async settled(key: string, signal: AbortSignal): Promise<void> {
    await this.#underway.get(key)?.catch(() => undefined);
    const sentAt = this.#sentAt.get(key);
    const wait = sentAt === undefined ? 0 : sentAt + KEPT_AFTER_MS - this.#runtime.now();
    if (wait > 0) await pause(this.#runtime, wait, signal);
  }

  /** Messages are answered without their words coming along. */
  said(messageId: string, text: string): void {
    if (text !== '') this.#words.set(messageId, text.slice(0, MOST_WORDS).toWellFormed());
  }

  wordsOf(messageId: string): string {
    return this.#words.get(messageId) ?? '';
  }

  /** Somebody has written, so that they may be answered until then. */
  heard(chat: string, messageId: string, until: number): void {
    if ((this.#heard.get(chat)?.until ?? 0) <= until) this.#heard.set(chat, { messageId, until });
  }

  mayAnswer(chat: string, now: number): boolean {
    return (this.#heard.get(chat)?.until ?? 0) > now;
  }

  /** What they wrote last, as far as it is known. */
  lastOf(chat: string): string | null {
    return this.#heard.get(chat)?.messageId ?? null;
  }
}
