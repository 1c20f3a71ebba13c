import { type Fields, textOf } from '../fields.ts';
import { type PlatformRuntime, SendFailure } from '../platform.ts';
import { QqError } from './qq-error.ts';

/** QQ gives a new one in the last minute of the old one, which stays good meanwhile. */
const RENEW_BEFORE_MS = 50_000;
const RETRY_MS = 1000;

interface TokenOptions {
  readonly appId: string;
  readonly clientSecret: string;
  readonly runtime: Pick<PlatformRuntime, 'now'>;
}

/** The access token, asked for when it is needed, once for all who need it at the same time. */
export class AccessToken {
  readonly #options: TokenOptions;
  readonly #ask: (json: Fields, signal: AbortSignal) => Promise<Fields>;
  #value: string | null = null;
  #until = 0;
  #asking: Promise<string> | null = null;
  /** The newest there was, so that it can be taken out of what is told. */
  last: string | null = null;

  constructor(options: TokenOptions, ask: (json: Fields, signal: AbortSignal) => Promise<Fields>) {
    this.#options = options;
    this.#ask = ask;
  }

  /** Throws `QqError` where the credential is refused, else a `SendFailure` that passes: nothing was sent yet. */
  async get(signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const now = this.#options.runtime.now();
    if (this.#value !== null && now < this.#until - RENEW_BEFORE_MS) return this.#value;
    this.#asking ??= this.#renew().finally(() => (this.#asking = null));
    return await orAborted(this.#asking, signal);
  }

  forget(token: string): void {
    if (token === this.#value) this.#value = null;
  }

  async #renew(): Promise<string> {
    const { appId, clientSecret, runtime } = this.#options;
    try {
      const given = await this.#ask({ appId, clientSecret }, NEVER);
      const token = textOf(given.access_token, 4096);
      const seconds = Number(given.expires_in);
      if (!token) throw new SendFailure('the server gave no access token', RETRY_MS, 'transient');
      this.#until = runtime.now() + (Number.isFinite(seconds) ? seconds * 1000 : 0);
      this.last = token;
      this.#value = token;
      return token;
    } catch (thrown) {
      if (this.#value !== null && runtime.now() < this.#until) return this.#value;
      if (thrown instanceof QqError) throw thrown;
      const reason = thrown instanceof Error ? thrown.message : 'unknown';
      throw new SendFailure(`no access token: ${reason}`, RETRY_MS, 'transient');
    }
  }
}

/** Whoever asks first must not end it for the others. */
const NEVER = new AbortController().signal;

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
