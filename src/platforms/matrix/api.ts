import { pause } from '../deadline.ts';
import { type Fields, fieldsOf, integerOf, textOf } from '../fields.ts';
import { callHttp, type HttpCall, retryAfter, unanswered } from '../http.ts';
import type { PlatformRuntime } from '../platform.ts';
import { type Redact, redaction } from '../redaction.ts';
import { waitToRetry } from './retry.ts';

const CALL_MS = 30_000;
const MOST_ANSWER_BYTES = 16 * 1024 * 1024;
const TRIES = 4;
const RETRY_MS = 1000;
/** So often a call is made that the server answers with trouble, while it answers others: with the pauses some minutes. */
const MOST_TRIES = 16;

export interface ApiOptions {
  /** The origin of the homeserver. */
  readonly homeserver: string;
  readonly token: string;
  readonly runtime: PlatformRuntime;
}

export interface ApiCall extends Omit<HttpCall, 'mostBytes'> {
  readonly query?: Readonly<Record<string, string | null>>;
  /** Longest time until it is answered. */
  readonly ms?: number;
}

/** The homeserver answered, and the answer is no. */
export class ApiError extends Error {
  readonly status: number;
  /** As the specification names it, such as `M_FORBIDDEN`; empty where the answer has none. */
  readonly code: string;
  /** How long the server asks to wait; null where it does not say. */
  readonly waitMs: number | null;

  constructor(status: number, code: string, words: string, waitMs: number | null = null) {
    super(`${status}${code === '' ? '' : ` ${code}`}${words === '' ? '' : `: ${words}`}`);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.waitMs = waitMs;
  }

  /** The same call may be answered otherwise later. */
  get mayPass(): boolean {
    return this.status >= 500 || this.status === 429 || this.status < 400;
  }

  /** The server says no to this call, and not only to our token. */
  get isRefusal(): boolean {
    return !this.mayPass && this.status !== 401;
  }
}

/** The address of a call, with what is filled in escaped. */
export function at(parts: TemplateStringsArray, ...filled: readonly string[]): string {
  return parts.reduce((path, part, i) => `${path}${encodeURIComponent(filled[i - 1] ?? '')}${part}`);
}

/** The client API of a homeserver. */
export class MatrixApi {
  readonly redact: Redact;
  readonly runtime: PlatformRuntime;
  readonly root: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor({ homeserver, token, runtime }: ApiOptions) {
    this.root = homeserver.replace(/(?<!\/)\/+$/, '');
    this.runtime = runtime;
    this.redact = redaction(token);
    this.headers = { authorization: `Bearer ${token}` };
  }

  /** Throws `ApiError`, and what `unanswered` understands. */
  async call(path: string, signal: AbortSignal, call: ApiCall = {}): Promise<Fields> {
    const { query = {}, ms = CALL_MS, ...rest } = call;
    const given = Object.entries(query).flatMap(([key, value]): [string, string][] => (value ? [[key, value]] : []));
    const url = `${this.root}${path}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`;
    const headers = { ...rest.headers, ...this.headers };
    const answer = await callHttp(url, { ...rest, headers, mostBytes: MOST_ANSWER_BYTES }, ms, signal);
    const body = fieldsOf(answer.body);
    const isGood = answer.status >= 200 && answer.status < 300;
    if (isGood && body !== null) return body;
    const code = textOf(body?.errcode, 64) ?? '';
    const words = textOf(body?.error, 200) ?? (isGood ? 'the answer is not of the Matrix API' : '');
    const asked = integerOf(body?.retry_after_ms);
    // The header is in whole seconds, and was added later: both are kept to.
    const waits = [retryAfter(answer.headers, this.runtime.now()), asked].filter((wait) => wait !== null);
    const waitMs = waits.length === 0 ? null : Math.max(0, ...waits);
    throw new ApiError(answer.status, code, this.redact(words), waitMs);
  }

  /**
   * Makes a call until it is answered, however long the server is away. Throws `ApiError` for a refusal, and in the end also
   * where the server is well and this call alone is not.
   */
  async callUntilAnswered<T>(call: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      signal.throwIfAborted();
      try {
        return await call(signal);
      } catch (thrown) {
        signal.throwIfAborted();
        const error = thrown instanceof ApiError ? thrown : null;
        if (error?.isRefusal) throw error;
        const isOver = tries >= MOST_TRIES && error?.status !== 429 && (await this.#isWell(signal));
        if (isOver) throw error ?? new ApiError(504, '', unanswered(thrown, this.redact).message);
        await waitToRetry(this.runtime, tries, signal, error?.waitMs ?? 0);
      }
    }
  }

  /** Asks for what a message cannot be understood without: null where the server does not say it. */
  async find(path: string, signal: AbortSignal): Promise<Fields | null> {
    try {
      return await this.callUntilAnswered((deadline) => this.call(path, deadline), signal);
    } catch (thrown) {
      if (thrown instanceof ApiError) return null;
      throw thrown;
    }
  }

  async #isWell(signal: AbortSignal): Promise<boolean> {
    return this.call('/_matrix/client/v3/account/whoami', signal).then(
      () => true,
      () => false,
    );
  }

  /** Asks for what helps but is not needed: null where the server will not say, or is not well for long. */
  async lookUp(path: string, signal: AbortSignal, query: ApiCall['query'] = {}): Promise<Fields | null> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.call(path, signal, { query });
      } catch (thrown) {
        signal.throwIfAborted();
        if ((thrown instanceof ApiError && !thrown.mayPass) || tries >= TRIES) return null;
        const asked = thrown instanceof ApiError ? (thrown.waitMs ?? 0) : 0;
        await pause(this.runtime, Math.max(asked, RETRY_MS * 2 ** (tries - 1)), signal);
      }
    }
  }
}
