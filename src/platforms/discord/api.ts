import { REST, type RequestMethod } from '@discordjs/rest';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { withDeadline } from '../deadline.ts';
import type { PlatformRuntime } from '../platform.ts';
import { type Redact, redaction } from '../redaction.ts';
import { sendFailureOf } from './failures.ts';

export interface DiscordOptions {
  readonly token: string;
  /** Stands for every host of Discord; null for Discord itself. */
  readonly apiRoot: string | null;
  readonly runtime: PlatformRuntime;
}

export interface ApiCall {
  readonly body?: unknown;
  readonly files?: readonly { readonly name: string; readonly data: Uint8Array; readonly contentType?: string }[];
  readonly query?: Readonly<Record<string, string>>;
  /** False for what the token in the address lets through: the answers to interactions. */
  readonly auth?: boolean;
  readonly ms?: number;
}

const API = 'https://discord.com';
const CALL_MS = 30_000;
/** What is too much for the bot as a whole waits here for the next second; everything else is refused, and the caller decides. */
const PATIENT_MS = 1500;
/** The longest that any call may take; each has a deadline of its own below it. */
const MOST_MS = 600_000;

/** The REST interface, with Discord's own limits honoured. */
export class DiscordApi {
  readonly runtime: PlatformRuntime;
  readonly redact: Redact;
  readonly token: string;
  readonly apiRoot: string | null;
  readonly #rest: REST;
  /** Discord counts the answers to interactions apart from all else that the bot does. */
  readonly #answers: REST;

  constructor({ token, apiRoot, runtime }: DiscordOptions) {
    // It goes into a header.
    if (!/^[\w.-]{1,256}$/.test(token)) {
      throw new MoiraiError('bad_input', 'the Discord token has characters that no token has');
    }
    this.runtime = runtime;
    this.token = token;
    this.apiRoot = apiRoot?.replace(/(?<!\/)\/+$/, '') ?? null;
    this.redact = redaction(token);
    this.#rest = restAt(this.apiRoot ?? API);
    this.#answers = restAt(this.apiRoot ?? API);
  }

  /** Makes a call. Throws the library's own errors, for those who look at them. */
  async raw(method: `${RequestMethod}`, route: `/${string}`, call: ApiCall, signal: AbortSignal): Promise<unknown> {
    const { body, files, query, auth = true, ms = CALL_MS } = call;
    return await withDeadline(signal, ms, (deadline) => {
      const rest = auth ? this.#rest : this.#answers;
      // The library forgets the token when it was refused once.
      rest.setToken(this.token);
      return rest.request({
        method: method as RequestMethod,
        fullRoute: route,
        auth,
        signal: deadline,
        ...(body === undefined ? {} : { body }),
        ...(query === undefined ? {} : { query: new URLSearchParams(query) }),
        ...(files === undefined || files.length === 0 ? {} : { files: files.map((file) => ({ ...file })) }),
      });
    });
  }

  /** Makes a call. Throws `SendFailure`. */
  async call(method: `${RequestMethod}`, route: `/${string}`, call: ApiCall, signal: AbortSignal): Promise<unknown> {
    try {
      return await this.raw(method, route, call, signal);
    } catch (thrown) {
      throw sendFailureOf(thrown, this.redact);
    }
  }
}

function restAt(root: string): REST {
  return new REST({
    ...{ api: `${root}/api`, version: '10', retries: 0, timeout: MOST_MS },
    rejectOnRateLimit: ({ global, timeToReset }) => !global || timeToReset > PATIENT_MS,
  });
}
