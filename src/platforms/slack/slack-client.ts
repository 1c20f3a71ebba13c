import { AsyncLocalStorage } from 'node:async_hooks';
import { type Logger, LogLevel, WebClient, type WebClientOptions } from '@slack/web-api';
import { withDeadline } from '../deadline.ts';
import { type Fields, fieldsOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import { type Redact, redaction } from '../redaction.ts';
import { addressAt } from './addresses.ts';

export interface SlackOptions {
  /** Of the bot: `xoxb-...`. */
  readonly token: string;
  /** Of the app: `xapp-...`; empty by HTTP. */
  readonly appToken: string;
  /** Empty by socket. */
  readonly signingSecret: string;
  readonly mode: 'socket' | 'http';
  /** Another host for everything; null for Slack's own. */
  readonly apiRoot: string | null;
  readonly runtime: PlatformRuntime;
  /** Epoch milliseconds, as Slack's own clock has them: signatures carry the time. */
  readonly clock: () => number;
}

/** What everything works with that calls Slack. */
export interface SlackBot {
  readonly runtime: PlatformRuntime;
  readonly redact: Redact;
  /** Calls a method of the Web API. Throws what `failures.ts` understands. */
  call(method: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal, ms?: number): Promise<Fields>;
  /** An address that Slack gave, as far as it may be used; null for anybody else's. */
  addressOf(url: unknown): URL | null;
  /** Goes along where Slack gives out files. */
  readonly bearer: Readonly<Record<string, string>>;
}

const API = 'https://slack.com/api/';
const CALL_MS = 30_000;

export function connectSlack({ token, appToken, signingSecret, apiRoot, runtime }: SlackOptions): SlackBot {
  // The library knows no signals: each call finds its own here, whatever the library does between.
  const signals = new AsyncLocalStorage<AbortSignal>();
  const fetchHere = (url: string | URL, init?: RequestInit) =>
    fetch(url, { ...init, signal: signals.getStore() ?? null });
  const client = new WebClient(token, { ...clientOptions(apiRoot), fetch: fetchHere, logger: SILENT });
  return {
    runtime,
    redact: redaction(token, appToken, signingSecret),
    bearer: { authorization: `Bearer ${token}` },
    addressOf: (url) => addressAt(url, apiRoot),
    call: async (method, args, signal, ms = CALL_MS) => {
      const answer = await withDeadline(signal, ms, (deadline) =>
        signals.run(deadline, () => client.apiCall(method, { ...args })),
      );
      return fieldsOf(answer) ?? {};
    },
  };
}

/** Whoever sends decides when it is tried again: a call is made once, and a refusal for too many is an answer. */
export function clientOptions(apiRoot: string | null): WebClientOptions {
  return {
    slackApiUrl: apiRoot === null ? API : `${apiRoot.replace(/(?<!\/)\/+$/, '')}/api/`,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    // A call that waited for another would run in the context of that one.
    maxRequestConcurrency: Number.POSITIVE_INFINITY,
  };
}

/** What fails is thrown as well, and what the library writes may hold tokens. */
export const SILENT: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  setLevel: () => undefined,
  getLevel: () => LogLevel.ERROR,
  setName: () => undefined,
};
