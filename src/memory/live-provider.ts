import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { Logger } from '../log/logger.ts';
import type { Timers } from '../queue/timers.ts';
import type { MemoryContext, MemoryProvider } from './provider.ts';

/** After a provider was slow or failed beside a turn, turns do without it for so long. */
const REST_MS = 30_000;
const INITIALIZE_MS = 15_000;

/** A provider with its state in this process: whether it is ready, and whether turns should do without it for now. */
export class LiveProvider {
  readonly provider: MemoryProvider;
  readonly #context: MemoryContext;
  readonly #timers: Timers;
  readonly #log: Logger;
  #ready: Promise<void> | null = null;
  #restsUntil = 0;

  constructor(provider: MemoryProvider, context: MemoryContext, timers: Timers, log: Logger) {
    this.provider = provider;
    this.#context = context;
    this.#timers = timers;
    this.#log = log.child({ provider: provider.name });
  }

  /** Initializes it if that has not been done. Throws `subscriber_unavailable` when it cannot be. */
  ready(): Promise<void> {
    this.#ready ??= this.#within(INITIALIZE_MS, async (signal) => {
      await this.provider.initialize?.(this.#context, signal);
    }).catch((thrown: unknown) => {
      this.#ready = null;
      throw unavailable(this.provider.name, thrown);
    });
    return this.#ready;
  }

  /** Asks beside a turn: null when it does not answer in time, fails, or did so a moment ago. */
  async ask<T>(what: string, ms: number, call: (signal: AbortSignal) => T | Promise<T>): Promise<T | null> {
    if (this.#timers.elapsed() < this.#restsUntil) return null;
    try {
      return await this.#within(ms, async (signal) => {
        await this.ready();
        return call(signal);
      });
    } catch (error) {
      this.#restsUntil = this.#timers.elapsed() + REST_MS;
      // Memory is a help, never a condition: the turn goes on without it.
      this.#log.warn('memory did not answer; going on without it', { what, error });
      return null;
    }
  }

  /** Handles an event, without a deadline of its own; a lost connection becomes `subscriber_unavailable`. */
  async hear(call: () => unknown): Promise<void> {
    await this.ready();
    try {
      await call();
    } catch (thrown) {
      throw isConnectionError(thrown) ? unavailable(this.provider.name, thrown) : thrown;
    }
  }

  async shutdown(ms: number): Promise<void> {
    const { provider } = this;
    if (this.#ready === null || provider.shutdown === undefined) return;
    try {
      await this.#within(ms, async () => provider.shutdown?.());
    } catch (error) {
      this.#log.warn('memory could not be shut down', { error });
    }
  }

  async #within<T>(ms: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    let cancel: () => void = () => undefined;
    const deadline = new Promise<never>((_, reject) => {
      cancel = this.#timers.after(ms, () => {
        const error = new MoiraiError('subscriber_timeout', `${this.provider.name} did not answer in ${ms} ms`);
        abort.abort(error);
        reject(error);
      });
    });
    try {
      return await Promise.race([call(abort.signal), deadline]);
    } finally {
      cancel();
    }
  }
}

function unavailable(name: string, thrown: unknown): MoiraiError {
  if (hasCode(thrown, 'subscriber_unavailable')) return thrown;
  const { message } = MoiraiError.wrap(thrown);
  return new MoiraiError('subscriber_unavailable', `the memory "${name}" is down: ${message}`, { cause: thrown });
}

const CONNECTION =
  /^(?:subscriber_unavailable$|ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EPIPE|UND_ERR_)/;

/** What `fetch` and sockets throw when no server answers, and what a plugin may throw to say the same. */
function isConnectionError(thrown: unknown, depth = 0): boolean {
  if (!(thrown instanceof Error) || depth > 3) return false;
  const { code } = thrown as { code?: unknown };
  return (typeof code === 'string' && CONNECTION.test(code)) || isConnectionError(thrown.cause, depth + 1);
}
