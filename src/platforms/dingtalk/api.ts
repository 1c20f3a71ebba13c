import { type Fields, fieldsOf, integerOf, textOf } from '../fields.ts';
import { callHttp, type HttpCall, unanswered } from '../http.ts';
import { type PlatformRuntime, SendFailure } from '../platform.ts';
import { type Redact, redaction } from '../redaction.ts';
import type { Addresses } from './addresses.ts';
import { Refusal, refusalIn } from './failures.ts';

const CALL_MS = 30_000;
/** A token is renewed before it is over: a call that was begun with it has to end. */
const EARLY = 0.9;

export interface AppOptions {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly robotCode: string;
  readonly addresses: Addresses;
  readonly runtime: PlatformRuntime;
}

interface Token {
  readonly value: string;
  readonly until: number;
}

export interface ApiCall extends HttpCall {
  /** Of the API, such as `/v1.0/card/streaming`. */
  readonly path: string;
}

/** DingTalk's API as one app sees it. Every call throws `Refusal` where DingTalk says no, else what `unanswered` understands. */
export class DingtalkApi {
  readonly app: AppOptions;
  readonly redact: Redact;
  #token: Token | null = null;
  #asking: Promise<Token> | null = null;

  constructor(app: AppOptions) {
    this.app = app;
    this.redact = (text) => redaction(app.clientSecret, this.#token?.value ?? null)(text);
  }

  /** Calls the API with the access token. One that is not taken is renewed, once. */
  async call({ path, ...call }: ApiCall, signal: AbortSignal): Promise<Fields> {
    return await this.withToken(signal, (token) =>
      this.ask(
        this.app.addresses.api(path),
        { method: 'POST', ...call, headers: { 'x-acs-dingtalk-access-token': token } },
        signal,
      ),
    );
  }

  /** Runs a call that carries the access token in a way of its own. */
  async withToken<T>(signal: AbortSignal, run: (token: string) => Promise<T>): Promise<T> {
    const token = await this.#freshToken(signal);
    try {
      return await run(token.value);
    } catch (thrown) {
      if (!(thrown instanceof Refusal) || !thrown.isOldToken) throw thrown;
      // Another call may have renewed it already.
      if (this.#token === token) this.#token = null;
      return await run((await this.#freshToken(signal)).value);
    }
  }

  /** Makes one request without a token. */
  async ask(url: string, call: HttpCall, signal: AbortSignal, ms = CALL_MS): Promise<Fields> {
    const answer = await callHttp(url, call, ms, signal);
    const refusal = refusalIn(answer, this.app.runtime.now());
    if (refusal !== null) throw refusal;
    return fieldsOf(answer.body) ?? {};
  }

  /** Asks for an access token as if there were none; throws where the app is not known. */
  async checkCredentials(signal: AbortSignal): Promise<void> {
    this.#token = await this.#askForToken(signal);
  }

  async #freshToken(signal: AbortSignal): Promise<Token> {
    signal.throwIfAborted();
    if (this.#token !== null && this.#token.until > this.app.runtime.now()) return this.#token;
    // One question for everybody who waits: whoever asked first may be called off.
    this.#asking ??= this.#askForToken(AbortSignal.timeout(CALL_MS)).finally(() => (this.#asking = null));
    const token = await this.#asking.catch((thrown: unknown) => {
      if (thrown instanceof Refusal) throw thrown;
      // Whatever became of the question: the call itself has not left.
      const { message, retryAfterMs } = unanswered(thrown, this.redact);
      throw new SendFailure(message, retryAfterMs, 'transient');
    });
    signal.throwIfAborted();
    this.#token = token;
    return token;
  }

  async #askForToken(signal: AbortSignal): Promise<Token> {
    const { clientId: appKey, clientSecret: appSecret, addresses, runtime } = this.app;
    const askedAt = runtime.now();
    const url = addresses.api('/v1.0/oauth2/accessToken');
    const { accessToken, expireIn } = await this.ask(url, { method: 'POST', json: { appKey, appSecret } }, signal);
    const value = textOf(accessToken, 4096);
    if (!value) throw new SendFailure('DingTalk gave no access token', CALL_MS, 'transient');
    return { value, until: askedAt + Math.max(0, integerOf(expireIn) ?? 0) * 1000 * EARLY };
  }
}
