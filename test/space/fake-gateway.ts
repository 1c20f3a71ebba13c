import { request as ask, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Delta, EndView, GatewayView, SessionView, Snapshot } from '../../src/space/page/protocol.ts';
import { builtPage } from '../../src/space/page-files.ts';

/** What a fake gateway can be told to be. */
export interface FakeOptions {
  readonly key?: string;
  readonly name?: string;
  readonly sessions?: number;
  /** Other gateways that this server passes on to, as `moirai space` does; then it is none itself. */
  readonly behind?: readonly FakeGateway[];
  readonly port?: number;
  /** A real gateway: everything but the page is passed on to it. */
  readonly real?: () => string;
  /** Where the page is built. */
  readonly page?: string;
}

interface FakeMessage {
  readonly role: string;
  readonly text: string;
  readonly data?: unknown;
}

interface KeptFake {
  view: SessionView;
  end: EndView | null;
  messages: FakeMessage[];
  parent: string | null;
}

export interface FakeSubscriber {
  name: string;
  lag: number;
  failures: number;
  dead_letters: number;
  last_error: string | null;
}

const PLATFORMS = ['telegram', 'discord', 'slack', 'web', 'api'];
const PHASES = [
  'idle',
  'idle',
  'idle',
  'thinking',
  'tool',
  'replying',
  'queued',
  'idle',
  'resume_pending',
  'suspended',
];
const TITLES = [
  'Holiday plans',
  'Invoice from March',
  'A poem about rain',
  'Fixing the build',
  'Tomatoes',
  'Night watch',
];

/** A gateway that is only its protocol: real HTTP on loopback, sessions in memory, and trouble on demand. */
export class FakeGateway {
  readonly sessions = new Map<string, KeptFake>();
  readonly subscribers: FakeSubscriber[] = [
    { name: 'notices', lag: 0, failures: 0, dead_letters: 0, last_error: null },
    { name: 'webhook:crm', lag: 12, failures: 3, dead_letters: 2, last_error: 'the other end answered 500' },
  ];
  readonly requests: string[] = [];
  readonly id: string;
  readonly name: string;
  key: string | null;
  unowned = 0;
  seq = 100;
  /** Answers nothing at all: connections are cut. */
  down = false;
  /** The status of streams, for versions that have none. */
  streamStatus = 200;
  /** Streams stay open and say nothing, not even that they live. */
  silent = false;
  wrongKeys = 0;
  /** Keys are not looked at while this is more than 0. */
  retryAfter = 0;
  readonly #behind: readonly FakeGateway[];
  readonly #streams = new Set<ServerResponse>();
  readonly #real: (() => string) | null;
  readonly #page: ReturnType<typeof builtPage>;
  readonly #server: Server;
  readonly #heart: NodeJS.Timeout;

  private constructor(options: FakeOptions) {
    this.name = options.name ?? 'clotho';
    this.id = `gw_${this.name}`;
    this.key = options.key ?? null;
    this.#behind = options.behind ?? [];
    this.#page = builtPage(options.page);
    this.#real = options.real ?? null;
    for (let index = 0; index < (options.sessions ?? 0); index++) this.put(makeSession(this, index));
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#heart = setInterval(() => {
      if (!this.silent) for (const stream of this.#streams) stream.write(': still here\n\n');
    }, 1000);
  }

  static async start(options: FakeOptions = {}): Promise<FakeGateway> {
    const fake = new FakeGateway(options);
    await new Promise<void>((resolve) => fake.#server.listen(options.port ?? 0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    clearInterval(this.#heart);
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Cuts every stream, as a broken network does. */
  drop(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  /** A session that starts or changes, without a word to anybody. */
  put(view: SessionView): void {
    const known = this.sessions.get(view.id);
    this.sessions.set(view.id, { end: null, messages: messagesFor(view), parent: null, ...known, view });
  }

  /** A session that starts or changes. */
  change(view: SessionView): void {
    this.put(view);
    this.#tell({ sessions: [view] });
  }

  endSession(id: string, reason: string, silent = false): EndView | null {
    const kept = this.sessions.get(id);
    if (kept === undefined) return null;
    kept.end ??= { id, reason, cause: null, at: new Date().toISOString() };
    if (!silent) this.#tell({ ended: [kept.end] });
    return kept.end;
  }

  /** Something happened while nobody heard of it. */
  pass(): void {
    this.seq += 10_000;
  }

  open(): SessionView[] {
    return [...this.sessions.values()].filter(({ end }) => end === null).map(({ view }) => view);
  }

  tellTotals(): void {
    this.#tell({});
  }

  #tell(delta: Partial<Delta>): void {
    this.seq++;
    const totals = { open: this.open().length, unowned: this.unowned };
    const data = { seq: this.seq, sessions: [], ended: [], removed: [], gateways: null, totals, more: false, ...delta };
    if (this.silent) return;
    for (const stream of this.#streams) stream.write(frame('delta', this.seq, data));
  }

  snapshot(): Omit<Snapshot, 'odd'> {
    const sessions = this.open();
    const totals = { open: sessions.length, unowned: this.unowned };
    return { seq: this.seq, gateways: [this.#view()], sessions, totals, more: false };
  }

  #view(): GatewayView {
    return {
      ...{ id: this.id, name: this.name, version: '0.1.0', host: 'loom', pid: 4711, state: 'ready', self: true },
      ...{ started_at: ago(7_200), last_heartbeat_at: ago(1), sessions: this.sessions.size },
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const url = new URL(request.url ?? '/', 'http://fake');
    this.requests.push(`${request.method} ${url.pathname}${url.search}`);
    if (this.down) return response.destroy();
    const file = request.method === 'GET' ? this.#page(url.pathname, undefined) : null;
    if (file !== null) return sendFile(response, file);
    if (this.#real !== null) return passOn(request, response, this.#real());
    if (url.pathname !== '/health' && !this.#admit(request, response)) return;
    if (url.pathname === '/space.json') return send(response, 200, { sources: this.#sources(), chat: true });
    const [, index, rest] = /^\/gateways\/(\d+)(\/.*)$/.exec(url.pathname) ?? [];
    const one = index === undefined ? this : this.#behind[Number(index)];
    if (one === undefined) return send(response, 404, error('not_found', 'there is nothing'));
    if (one !== this && one.down)
      return send(response, 502, error('gateway_unreachable', `${one.name} does not answer`));
    if (rest !== undefined) url.pathname = rest;
    return one.#serve(request, response, url);
  }

  #sources(): { name: string; base: string }[] {
    if (this.#behind.length === 0) return [{ name: this.name, base: '' }];
    return this.#behind.map(({ name }, index) => ({ name, base: `/gateways/${index}` }));
  }

  #admit(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.key === null) return true;
    if (this.retryAfter > 0) {
      response.setHeader('retry-after', String(this.retryAfter));
      send(response, 429, error('too_many_failures', 'too many wrong keys'));
      return false;
    }
    if (request.headers.authorization === `Bearer ${this.key}`) return true;
    this.wrongKeys++;
    send(response, 401, error('unauthorized', 'the key is wrong'));
    return false;
  }

  async #serve(request: IncomingMessage, response: ServerResponse, url: URL): Promise<unknown> {
    const path = url.pathname;
    if (path === '/v1/space/activity') return this.#activity(request, response);
    if (path === '/v1/space/timeline') return send(response, 200, timelineOf(url));
    if (path === '/ready') return send(response, 200, { state: 'ready', checks: CHECKS });
    if (path === '/v1/subscribers')
      return send(response, 200, { data: this.subscribers.map(subscriberView), next: null });
    if (path === '/v1/sessions') return this.#list(response, url);
    const [, name] = /^\/v1\/subscribers\/([^/]+)\/replay$/.exec(path) ?? [];
    if (name !== undefined) return this.#replay(response, decodeURIComponent(name), await bodyOf(request));
    const [, id = '', part = ''] = /^\/v1\/sessions\/([^/]+)(\/[a-z]+)?$/.exec(path) ?? [];
    const kept = this.sessions.get(decodeURIComponent(id));
    if (kept === undefined) return send(response, 404, error('session_not_found', `no session "${id}"`));
    if (part === '') return send(response, 200, keptView(kept));
    if (part === '/messages') return this.#messages(response, url, kept);
    if (part === '/events')
      return send(response, 200, { data: url.searchParams.get('after') === '0' ? eventsOf(kept) : [], next: this.seq });
    if (part === '/end') {
      this.endSession(kept.view.id, 'api_close');
      return send(response, 200, keptView(kept));
    }
    if (part === '/resume') return send(response, 201, keptView(this.#resume(kept)));
    return send(response, 404, error('not_found', 'there is nothing'));
  }

  #activity(request: IncomingMessage, response: ServerResponse): unknown {
    const wantsStream = (request.headers.accept ?? '').includes('text/event-stream');
    if (!wantsStream) {
      const etag = `"${this.seq}"`;
      if (request.headers['if-none-match'] === etag) return response.writeHead(304, { etag }).end();
      return send(response, 200, this.snapshot(), { etag });
    }
    if (this.streamStatus !== 200) return send(response, this.streamStatus, error('not_found', 'no stream here'));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.#streams.add(response);
    response.on('close', () => this.#streams.delete(response));
    if (this.silent) return response.flushHeaders();
    // Whoever has heard of everything gets nothing again; everybody else the whole.
    const known = request.headers['last-event-id'] === String(this.seq);
    return response.write(known ? ': still here\n\n' : frame('snapshot', this.seq, this.snapshot()));
  }

  #list(response: ServerResponse, url: URL): void {
    const q = url.searchParams.get('q') ?? '';
    const ended = [...this.sessions.values()].filter(({ end, view }) => end !== null && (view.title ?? '').includes(q));
    const from = Number(url.searchParams.get('cursor') ?? 0);
    const limit = Number(url.searchParams.get('limit') ?? 50);
    const next = from + limit < ended.length ? String(from + limit) : null;
    send(response, 200, { data: ended.slice(from, from + limit).map(keptView), next });
  }

  #messages(response: ServerResponse, url: URL, { messages, view }: KeptFake): void {
    const after = Number(url.searchParams.get('cursor') ?? 0);
    const limit = Number(url.searchParams.get('limit') ?? 50);
    const data = messages.map((message, index) => ({
      ...{ data: null, turn_id: null, session_id: view.id, position: index + 1, at: ago(600 - index), ...message },
    }));
    send(response, 200, { data: data.slice(after, after + limit), next: null });
  }

  #replay(response: ServerResponse, name: string, body: Record<string, unknown>): unknown {
    const one = this.subscribers.find((subscriber) => subscriber.name === name);
    if (one === undefined) return send(response, 404, error('subscriber_not_found', `no subscriber "${name}"`));
    const events = body.dead === true ? one.dead_letters : this.seq - Number(body.from);
    if (body.dead === true) one.dead_letters = 0;
    return send(response, 200, { events });
  }

  #resume({ view }: KeptFake): KeptFake {
    const next = {
      ...view,
      id: `${view.id}_next`,
      phase: 'idle' as const,
      started_at: ago(0),
      last_activity_at: ago(0),
    };
    this.put(next);
    const kept = this.sessions.get(next.id);
    if (kept === undefined) throw new RangeError('a session that was put is there');
    kept.parent = view.id;
    this.change(next);
    return kept;
  }
}

function passOn(request: IncomingMessage, response: ServerResponse, to: string): void {
  const { host: _, origin: __, ...headers } = request.headers;
  const asked = ask(new URL(request.url ?? '/', to), { method: request.method ?? 'GET', headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    answer.on('error', () => response.destroy());
  });
  asked.on('error', () => response.destroy());
  response.on('close', () => asked.destroy());
  request.pipe(asked);
}

const CHECKS = {
  store: { ok: true, detail: 'answers in 1 ms' },
  lease: { ok: true, detail: 'renewed 2 s ago' },
  telegram: { ok: false, detail: 'the connection is being made again' },
};

export function makeSession(gateway: FakeGateway, index: number, more: Partial<SessionView> = {}): SessionView {
  const phase = (PHASES[index % PHASES.length] ?? 'idle') as SessionView['phase'];
  const platform = PLATFORMS[index % PLATFORMS.length] ?? 'api';
  const running = phase === 'thinking' || phase === 'tool' || phase === 'replying';
  return {
    id: `ses_${gateway.name}_${String(index).padStart(5, '0')}`,
    key: `agent:main:${platform}:dm:${1000 + index}`,
    kind: index % 7 === 6 ? 'cron' : 'chat',
    platform,
    user: index % 7 === 6 ? null : `user-${index % 40}`,
    title: index % 4 === 3 ? null : `${TITLES[index % TITLES.length]} ${index}`,
    state: phase === 'suspended' || phase === 'resume_pending' ? phase : 'open',
    phase,
    tool: phase === 'tool' ? 'web_search' : null,
    turn_started_at: running ? ago(12) : null,
    queued: phase === 'queued' ? 2 : 0,
    started_at: ago(3_600 + index * 60),
    last_activity_at: ago(index * 7),
    last_heartbeat_at: ago(2),
    expires_at: index % 3 === 0 ? null : ago(-(1_800 + index * 30)),
    message_count: messagesOf(index),
    tokens: { input: 1_200 + index * 37, output: 300 + index * 11 },
    gateway: running ? gateway.id : null,
    ...more,
  };
}

function messagesOf(index: number): number {
  return index === 0 ? 120 : 2 + (index % 9);
}

function messagesFor({ message_count: count, title }: SessionView): FakeMessage[] {
  return Array.from({ length: count }, (_, index) => {
    if (index % 4 === 0) return { role: 'user', text: `What about ${title ?? 'this'}? (${index})` };
    if (index % 4 === 1)
      return {
        role: 'assistant',
        text: '',
        data: { toolCalls: [{ id: 'c1', name: 'web_search', args: { q: 'rain' } }] },
      };
    if (index % 4 === 2)
      return {
        role: 'tool',
        text: 'Found three pages.\nThe first is about rain.',
        data: { toolCallId: 'c1', name: 'web_search', ok: true },
      };
    return { role: 'assistant', text: `Here is what I know about it, number ${index}.\n\nIt rains.` };
  });
}

function keptView({ view, end, parent }: KeptFake) {
  const { user, phase: _, tool: __, turn_started_at: ___, queued: ____, gateway, ...rest } = view;
  return {
    ...{ ...rest, user_id: user, owner: gateway, state: end === null ? view.state : 'ended' },
    ...{ ended_at: end?.at ?? null, end_reason: end?.reason ?? null, end_cause: end?.cause ?? null },
    ...{ parent_id: parent, lineage: parent === null ? null : 'resume' },
    resume_reason: view.phase === 'resume_pending' ? 'crash' : null,
  };
}

function eventsOf({ view, end }: KeptFake) {
  const of = { session_id: view.id, session_key: view.key, platform: view.platform };
  const start = { id: 'evt_1', seq: 1, type: 'session:start', at: view.started_at, ...of };
  const turn = { id: 'evt_2', seq: 2, type: 'turn:start', at: view.last_activity_at, ...of };
  return end === null
    ? [start, turn]
    : [start, turn, { id: 'evt_3', seq: 3, type: 'session:end', at: end.at, ...of, reason: end.reason }];
}

function subscriberView(one: FakeSubscriber) {
  const oldest = one.lag > 0 ? ago(90) : null;
  return { ...one, events: ['session:*'], created_at: ago(9_000), position: 88, lanes: 1, oldest_pending_at: oldest };
}

function timelineOf(url: URL) {
  const from = url.searchParams.get('from') ?? '';
  const to = url.searchParams.get('to') ?? '';
  const step = Number(url.searchParams.get('step'));
  const slots = (Date.parse(to) - Date.parse(from)) / 1000 / step;
  const wave = (shift: number, most: number): number[] =>
    Array.from({ length: slots }, (_, index) => Math.max(0, Math.round(most * Math.sin((index + shift) / 6))));
  const ended = { user_reset: wave(0, 5), idle_expiry: wave(8, 4), api_close: wave(3, 2), reaped: wave(20, 1) };
  return { from, to, step, started: wave(2, 9), ended };
}

function ago(seconds: number): string {
  return new Date(Date.now() - seconds * 1000).toISOString();
}

function frame(event: string, id: number, data: unknown): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

function error(code: string, message: string) {
  return { error: { code, message, hint: '' } };
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

async function sendFile(response: ServerResponse, file: Response): Promise<void> {
  response.writeHead(file.status, Object.fromEntries(file.headers)).end(Buffer.from(await file.arrayBuffer()));
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}') as Record<string, unknown>;
}
