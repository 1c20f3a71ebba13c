import { pause } from './deadline.ts';
import type { Inbox, PlatformRuntime, PlatformState } from './platform.ts';

const RETRY_BASE_MS = 1000;
const RETRY_CAP_MS = 60_000;
/** Two processes that use one credential by turns throw each other out; the one that waits longer lets the other work. */
const STANDBY_MS = 5000;

/** Why there is no connection, and what that means. */
export interface Trouble {
  readonly phase: Extract<PlatformState['phase'], 'degraded' | 'standby' | 'failed'>;
  readonly problem: string;
  /** The server asks for this much patience at least. */
  readonly waitMs: number;
}

interface ConnectionOptions<T extends Trouble> {
  /** As people know the platform. */
  readonly label: string;
  readonly runtime: PlatformRuntime;
  /** What a failed call says about the connection; without secrets. */
  readonly troubleOf: (thrown: unknown) => T;
}

/** How a platform stands with its server, and how long it waits before the next try. */
export class Connection<T extends Trouble = Trouble> {
  readonly #options: ConnectionOptions<T>;
  #state: PlatformState = { phase: 'stopped', problem: null, lastSuccessAt: null };
  #inbox: Inbox | null = null;
  #failures = 0;
  #untaken = 0;

  constructor(options: ConnectionOptions<T>) {
    this.#options = options;
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
    this.#state = { ...this.#state, lastSuccessAt: this.#options.runtime.now() };
    this.#become('connected', null);
  }

  /** The server answered something, although nothing new: it is there. */
  alive(): void {
    this.#state = { ...this.#state, lastSuccessAt: this.#options.runtime.now() };
  }

  /** Resolves when it is time to try again; returns what was wrong. */
  async failed(thrown: unknown, signal: AbortSignal): Promise<T> {
    const trouble = this.#options.troubleOf(thrown);
    this.#become(trouble.phase, trouble.problem);
    const least = trouble.phase === 'standby' ? STANDBY_MS : trouble.waitMs;
    if (trouble.phase !== 'failed')
      await pause(this.#options.runtime, Math.max(least, this.#backoff(this.#failures++)), signal);
    return trouble;
  }

  /** Tries until it succeeds; null when the signal ends it, or trying has no use. */
  async keepTrying<R>(attempt: () => Promise<R>, signal: AbortSignal): Promise<R | null> {
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
    await pause(this.#options.runtime, this.#backoff(this.#untaken++), signal);
  }

  #become(phase: PlatformState['phase'], problem: string | null): void {
    if (phase === this.#state.phase && problem === this.#state.problem) return;
    this.#state = { ...this.#state, phase, problem };
    if (problem !== null) this.#options.runtime.warn(`${this.#options.label} is ${phase}`, { problem });
    this.#inbox?.changed();
  }

  #backoff(failures: number): number {
    const full = Math.min(RETRY_BASE_MS * 2 ** failures, RETRY_CAP_MS);
    return full * (0.5 + this.#options.runtime.random() / 2);
  }
}
