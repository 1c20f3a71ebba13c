import type { Inbox, PlatformState } from '../platform.ts';
import type { Bot } from './bot-api.ts';
import { type Trouble, troubleOf } from './failures.ts';

const RETRY_BASE_MS = 1000;
const RETRY_CAP_MS = 60_000;
/** Two processes that poll by turns throw each other out; the one that waits longer lets the other work. */
const STANDBY_MS = 5000;

/** How we stand with the server, and how long to wait before the next try. */
export class Connection {
  readonly #bot: Bot;
  #state: PlatformState = { phase: 'stopped', problem: null, lastSuccessAt: null };
  #inbox: Inbox | null = null;
  #failures = 0;
  #untaken = 0;

  constructor(bot: Bot) {
    this.#bot = bot;
  }

  get state(): PlatformState {
    return this.#state;
  }

  open(inbox: Inbox): void {
    this.#inbox = inbox;
    this.#failures = 0;
    this.#untaken = 0;
    this.#become('connecting', null);
  }

  close(): void {
    this.#become('stopped', null);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#state = { ...this.#state, lastSuccessAt: this.#bot.runtime.now() };
    this.#become('connected', null);
  }

  /** Resolves when it is time to try again; returns what was wrong. */
  async failed(thrown: unknown, signal: AbortSignal): Promise<Trouble> {
    const trouble = troubleOf(thrown, this.#bot.redact);
    this.#become(trouble.phase, trouble.problem);
    const least = trouble.phase === 'standby' ? STANDBY_MS : trouble.waitMs;
    if (trouble.phase !== 'failed') await this.#pause(Math.max(least, this.#backoff(this.#failures++)), signal);
    return trouble;
  }

  /** Tries until it succeeds; null when the signal ends it, or trying has no use. */
  async keepTrying<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T | null> {
    while (!signal.aborted) {
      try {
        return await attempt();
      } catch (thrown) {
        if (signal.aborted || (await this.failed(thrown, signal)).phase === 'failed') return null;
      }
    }
    return null;
  }

  /** What the server gave is taken. */
  taken(): void {
    this.#untaken = 0;
  }

  /** The server is well, but what it gave could not be taken. Resolves when it is time to ask for it again. */
  async untaken(signal: AbortSignal): Promise<void> {
    await this.#pause(this.#backoff(this.#untaken++), signal);
  }

  #become(phase: PlatformState['phase'], problem: string | null): void {
    if (phase === this.#state.phase && problem === this.#state.problem) return;
    this.#state = { ...this.#state, phase, problem };
    if (problem !== null) this.#bot.runtime.warn(`Telegram is ${phase}`, { problem });
    this.#inbox?.changed();
  }

  #backoff(failures: number): number {
    const full = Math.min(RETRY_BASE_MS * 2 ** failures, RETRY_CAP_MS);
    return full * (0.5 + this.#bot.runtime.random() / 2);
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        cancel();
        signal.removeEventListener('abort', finish);
        resolve();
      };
      const cancel = this.#bot.runtime.after(ms, finish);
      signal.addEventListener('abort', finish, { once: true });
      if (signal.aborted) finish();
    });
  }
}
