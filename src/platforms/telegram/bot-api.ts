// The build for browsers uses Node's own fetch; the other brings one of its own, whose errors contain the token.
import { Api, type ApiClientOptions } from 'grammy/web';

export interface BotApiSettings {
  readonly token: string;
  /** Without a slash at the end. */
  readonly apiRoot: string;
}

/** Every method of the Bot API, as Telegram names them. */
export type BotApi = Api['raw'];

/** The types of the library know the signals of another library only; those of Node do as well. */
export type CallSignal = AbortSignal & NonNullable<Parameters<BotApi['getMe']>[0]>;

export function connectBotApi({ token, apiRoot }: BotApiSettings): BotApi {
  // No answer may lead a request, which has the token in its address, to another server.
  const fetchHere = (url: string, init: RequestInit) => fetch(url, { ...init, duplex: 'half', redirect: 'error' });
  const options: ApiClientOptions = { apiRoot, fetch: fetchHere as unknown as NonNullable<ApiClientOptions['fetch']> };
  return new Api(token, options).raw;
}

/** Takes the token out of a text: addresses of the Bot API contain it, and so do errors about them. */
export function makeRedact(token: string): (text: string) => string {
  const secret = token.slice(token.indexOf(':') + 1);
  const spellings = [token, encodeURIComponent(token), secret].filter((spelling) => spelling !== '');
  return (text) => spellings.reduce((rest, spelling) => rest.replaceAll(spelling, '<token>'), text);
}

/** Runs a call that ends when the signal does, and after `ms` at the latest. */
export async function withDeadline<T>(
  signal: AbortSignal,
  ms: number,
  call: (signal: CallSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, ms);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await call(controller.signal as CallSignal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
