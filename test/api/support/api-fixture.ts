import { request } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type ApiOptions, type RunningApi, startApi } from '../../../src/api/server.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import { bootTestEngine, openTestStore, type TestStore } from '../../support/stores.ts';
import { ScriptedBackend } from './scripted-backend.ts';

/** A port, opened anew for each test, on a real store that the tests of a group share. */
export interface ApiFixture {
  readonly opened: TestStore;
  readonly engine: Engine;
  readonly backend: ScriptedBackend;
  api: RunningApi;
  /** What was logged, as text. */
  readonly logged: string[];
  /** Opens the port again, under other rules. */
  reopen(options: Partial<ApiOptions>): Promise<void>;
}

export function apiFixture(options: Partial<ApiOptions> = {}): ApiFixture {
  const fixture = {} as { -readonly [K in keyof ApiFixture]: ApiFixture[K] };
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    fixture.logged.push(`${message}: ${String(fields.error)}`);
  };
  const open = (rules: Partial<ApiOptions>): Promise<RunningApi> =>
    startApi({
      ...{ host: '127.0.0.1', port: 0, apiKey: null, allowedOrigins: [], version: '0.0.0-test' },
      ...{ backend: fixture.backend, engine: fixture.engine, log: { error: note, warn: note } },
      ...options,
      ...rules,
    });
  fixture.reopen = async (rules) => {
    await fixture.api.close();
    fixture.api = await open(rules);
  };
  beforeAll(async () => {
    fixture.opened = await openTestStore('sqlite');
    fixture.engine = await bootTestEngine(fixture.opened.store);
  });
  afterAll(() => fixture.opened.remove());
  beforeEach(async () => {
    fixture.logged = [];
    fixture.backend = new ScriptedBackend(fixture.engine);
    fixture.api = await open({});
  });
  afterEach(() => fixture.api.close());
  return fixture;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what comes over the wire has no type; the tests are about what it is.
  readonly json: any;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, a text as it is. */
  readonly body?: unknown;
}

/** One request by Node's own client, which lets any header be set. */
export function ask(api: Pick<RunningApi, 'url'>, path: string, asking: RequestOptions = {}): Promise<Answer> {
  const { body, headers = {} } = asking;
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const method = asking.method ?? (body === undefined ? 'GET' : 'POST');
  const { hostname, port } = new URL(api.url);
  const json = typeof body === 'object' ? { 'content-type': 'application/json' } : {};
  return new Promise((resolve, reject) => {
    const sent = request(
      // The path as it is: some are no part of any address.
      { hostname, port, path, method, headers: { ...json, ...headers }, agent: false },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          const said = Buffer.concat(chunks).toString('utf8');
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: said, json: parsed(said) });
        });
      },
    );
    sent.on('error', reject);
    sent.end(text);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface StreamedEvent {
  readonly id: string | null;
  readonly event: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly data: any;
}

/** Server-sent events, as they come; comments are left out. */
export async function* listen(
  api: Pick<RunningApi, 'url'>,
  path: string,
  init: RequestInit & { headers?: Record<string, string> } = {},
): AsyncGenerator<StreamedEvent> {
  const headers = { accept: 'text/event-stream', ...init.headers };
  const answer = await fetch(new URL(path, api.url), { ...init, headers });
  if (answer.status !== 200 || answer.body === null) throw new TypeError(`${answer.status}: ${await answer.text()}`);
  let text = '';
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const event = parseFrame(text.slice(0, end));
      text = text.slice(end + 2);
      if (event !== null) yield event;
    }
  }
}

function parseFrame(frame: string): StreamedEvent | null {
  const field = (name: string): string | null => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1] ?? null;
  const data = field('data');
  return data === null ? null : { id: field('id'), event: field('event'), data: parsed(data) ?? data };
}

/** The first so many of a stream; the connection is cut then. */
export async function firstOf<T>(stream: AsyncGenerator<T>, count: number): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) {
    items.push(item);
    if (items.length === count) break;
  }
  return items;
}

export async function until(what: string, done: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  const end = Date.now() + ms;
  while (!(await done())) {
    if (Date.now() > end) throw new TypeError(`waited too long until ${what}`);
    await new Promise((next) => setTimeout(next, 10));
  }
}
