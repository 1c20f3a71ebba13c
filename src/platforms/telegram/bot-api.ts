// The build for browsers uses Node's own fetch; the other brings one of its own, whose errors contain the token.
import { Api, type ApiClientOptions } from 'grammy/web';
import type { PlatformRuntime } from '../platform.ts';
import { type Redact, redaction } from '../redaction.ts';

export interface BotOptions {
  /** As BotFather gave it. */
  readonly token: string;
  /** `https://api.telegram.org`, or a Bot API server of one's own. */
  readonly apiRoot: string;
  readonly runtime: PlatformRuntime;
}

/** Every method of the Bot API, as Telegram names them. */
export type BotApi = Api['raw'];

/** The types of the library know the signals of another library only; those of Node do as well. */
export type CallSignal = AbortSignal & NonNullable<Parameters<BotApi['getMe']>[0]>;

/** What everything works with that calls Telegram. */
export interface Bot {
  readonly api: BotApi;
  readonly runtime: PlatformRuntime;
  /** The address below which files are read. It contains the token. */
  readonly fileRoot: string;
  /** Takes the token out of a text: addresses of the Bot API contain it, and so do errors about them. */
  readonly redact: Redact;
}

export function connectBot({ token, apiRoot, runtime }: BotOptions): Bot {
  const root = apiRoot.replace(/(?<!\/)\/+$/, '');
  // No answer may lead a request, which has the token in its address, to another server.
  const fetchHere = (url: string, init: RequestInit) => fetch(url, { ...init, duplex: 'half', redirect: 'error' });
  const options = { apiRoot: root, fetch: fetchHere as unknown as NonNullable<ApiClientOptions['fetch']> };
  const secret = token.slice(token.indexOf(':') + 1);
  return {
    api: new Api(token, options).raw,
    runtime,
    fileRoot: `${root}/file/bot${token}`,
    redact: redaction(token, secret),
  };
}
