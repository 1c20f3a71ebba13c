import { type Fields, fieldsOf, textOf } from '../fields.ts';
import { callHttp, type HttpAnswer, retryAfter, unanswered } from '../http.ts';
import type { PlatformRuntime } from '../platform.ts';
import { type Redact, redaction } from '../redaction.ts';
import type { Hosts } from './hosts.ts';
import { CredentialRefused, QqError } from './qq-error.ts';
import { AccessToken } from './token.ts';

export interface ApiOptions extends Hosts {
  readonly appId: string;
  /** The AppSecret. */
  readonly clientSecret: string;
  readonly runtime: PlatformRuntime;
}

export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly json?: Fields;
}

const CALL_MS = 30_000;
/** It goes on after a stop: everybody waits for the same one. */
const TOKEN_MS = 10_000;
const LONGEST_REASON = 200;
/** The AppID or the AppSecret is wrong, or the bot is gone; elsewhere the last of them means something else. */
const NO_SUCH_BOT: ReadonlySet<number> = new Set([100007, 100016, 10004]);
const NOT_AUTHORIZED: ReadonlySet<number> = new Set([11241, 11243, 11251, 11261, 11275]);

/** The HTTP interface of QQ, with the token that it wants. */
export class QqApi {
  readonly options: ApiOptions;
  readonly redact: Redact;
  readonly #token: AccessToken;

  constructor(options: ApiOptions) {
    this.options = options;
    this.redact = (text) => redaction(options.clientSecret, this.#token.last)(text);
    this.#token = new AccessToken(options, (json, signal) => this.#askToken(json, signal));
  }

  /** What the server answers; throws `QqError`, or what `unanswered` makes of no answer. */
  async call({ method, path, json }: ApiCall, signal: AbortSignal, ms = CALL_MS): Promise<Fields> {
    for (let isSecond = false; ; isSecond = true) {
      const token = await this.#token.get(signal);
      const headers = { authorization: `QQBot ${token}` };
      const request = { method, headers, ...(json === undefined ? {} : { json }) };
      const answer = await this.#ask(`${this.options.apiRoot}${path}`, request, ms, signal);
      const error = errorIn(answer, this.options.runtime.now());
      if (error === null) return fieldsOf(answer.body) ?? {};
      // It may have been taken back early: a new one is asked for once.
      if (isSecond || !(error.status === 401 || NOT_AUTHORIZED.has(error.code))) throw error;
      this.#token.forget(token);
    }
  }

  /** The access token, as the socket wants it too. */
  token(signal: AbortSignal): Promise<string> {
    return this.#token.get(signal);
  }

  /** The server does not take the token any more. */
  forgetToken(): void {
    this.#token.forget(this.#token.last ?? '');
  }

  async #askToken(json: Fields, signal: AbortSignal): Promise<Fields> {
    const url = `${this.options.tokenRoot}/app/getAppAccessToken`;
    const answer = await this.#ask(url, { method: 'POST', json }, TOKEN_MS, signal);
    const error = errorIn(answer, this.options.runtime.now());
    if (error === null) return fieldsOf(answer.body) ?? {};
    const { message, status, code } = error;
    throw NO_SUCH_BOT.has(code) ? new CredentialRefused(message, status, code) : error;
  }

  async #ask(url: string, call: Parameters<typeof callHttp>[1], ms: number, signal: AbortSignal): Promise<HttpAnswer> {
    try {
      return await callHttp(url, call, ms, signal);
    } catch (thrown) {
      signal.throwIfAborted();
      throw unanswered(thrown, this.redact);
    }
  }
}

/** Errors come with a status, or with 200 and a code; the code has one of two names. */
function errorIn({ status, headers, body }: HttpAnswer, now: number): QqError | null {
  const fields = fieldsOf(body) ?? {};
  const code = Number(fields.code ?? fields.err_code ?? 0);
  const isGood = status >= 200 && status < 300;
  if (isGood && (code === 0 || !Number.isSafeInteger(code))) return null;
  const said = textOf(fields.message, LONGEST_REASON) ?? `status ${status}`;
  const known = Number.isSafeInteger(code) ? code : 0;
  const reason = known === 0 ? said : `${said} (${known})`;
  return new QqError(reason, status, known, retryAfter(headers, now), fields);
}
