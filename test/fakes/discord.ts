import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DiscordGateway } from './discord-gateway.ts';
import { handleChannels } from './discord-routes.ts';
import { type Answer, type Call, DiscordState, GUILD, type Json, ok, refusal } from './discord-state.ts';

/** How the next call of a kind goes wrong. `lost`: it is done, and the connection is cut instead of an answer. */
export type Fault =
  | 'lost'
  | 'cut'
  | { readonly status: number; readonly body?: Json; readonly headers?: Record<string, string>; readonly html?: true };

/** How many calls of a kind one channel takes in a while. */
export interface Bucket {
  readonly limit: number;
  readonly ms: number;
}

/** Discord on loopback: REST with its limits, the gateway, and the files. */
export class DiscordFake extends DiscordState {
  readonly token = 'MTAwMDAwMDAwMDAwMDAwMDAw.Gabcde.the-secret-part_of-the-token-01';
  readonly gateway: DiscordGateway;
  readonly calls: Call[] = [];
  readonly buckets: Record<string, Bucket> = { messages: { limit: 50, ms: 1000 }, reactions: { limit: 1, ms: 250 } };
  commands: Json[] = [];
  revoked = false;
  refusedIntents = 0;
  sessionsLeft = 1000;
  readonly #server: Server;
  readonly #faults = new Map<string, Fault[]>();
  readonly #used = new Map<string, { left: number; until: number }>();

  private constructor(server: Server) {
    super();
    this.#server = server;
    this.gateway = new DiscordGateway(server, {
      token: () => (this.revoked ? 'none' : this.token),
      ready: ({ id }) => this.#ready(id),
      refusedIntents: () => this.refusedIntents,
    });
  }

  static async start(): Promise<DiscordFake> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const fake = new DiscordFake(server);
    server.on('request', (request, response) => {
      fake.#serve(request, response).catch(() => response.destroy());
    });
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get socketUrl(): string {
    return this.url.replace('http', 'ws');
  }

  async close(): Promise<void> {
    this.gateway.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** The next calls of a kind, as `POST messages`, go wrong like this. */
  failNext(kind: string, ...faults: Fault[]): void {
    this.#faults.set(kind, [...(this.#faults.get(kind) ?? []), ...faults]);
  }

  callsOf(method: string, path: RegExp): Call[] {
    return this.calls.filter((call) => call.method === method && path.test(call.path));
  }

  #ready(id: string) {
    const ready = {
      ...{ v: 10, session_id: id, resume_gateway_url: this.socketUrl, user: this.self, application: this.application },
      guilds: [{ id: GUILD, unavailable: true }],
    };
    return [
      { t: 'READY', d: ready },
      { t: 'GUILD_CREATE', d: this.guildWithChannels() },
    ];
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    if (!url.pathname.startsWith('/api/v10/')) return this.#serveFile(url, response);
    const { body, files } = await readBody(request, Buffer.concat(chunks));
    const path = url.pathname.slice('/api/v10'.length);
    const call = { method: request.method ?? 'GET', path, query: url.searchParams, body, files, at: Date.now() };
    this.calls.push(call);
    const fault = this.#faultFor(call);
    if (fault === 'cut') return void response.destroy();
    if (fault !== undefined && fault !== 'lost') return send(response, faultAnswer(fault));
    const limited = this.#limit(call);
    if (limited.status !== 200) return send(response, limited);
    const isOpen = /^\/(?:interactions|webhooks)\//.test(path);
    const isKnown = !this.revoked && request.headers.authorization === `Bot ${this.token}`;
    const answer = isOpen || isKnown ? this.#answer(call) : refusal(401, 0, '401: Unauthorized');
    if (fault === 'lost') return void response.destroy();
    send(response, { ...answer, headers: { ...limited.headers, ...answer.headers } });
  }

  #answer(call: Call): Answer {
    const { method, path } = call;
    const session_start_limit = { total: 1000, remaining: this.sessionsLeft, reset_after: 60_000, max_concurrency: 1 };
    if (path === '/gateway/bot') return ok({ url: this.socketUrl, shards: 1, session_start_limit });
    if (path === '/users/@me') return ok(this.self);
    if (path === '/applications/@me') return ok(this.application);
    if (path === '/users/@me/guilds') return ok(call.query.get('after') === '0' ? [this.guild] : []);
    if (path === `/applications/${this.application.id}/commands` && method === 'PUT') {
      this.commands = call.body as unknown as Json[];
      return ok(this.commands);
    }
    return handleChannels(this, call);
  }

  /** Discord's own headers; 429 for what is too much. */
  #limit({ method, path }: Call): Answer {
    const [, channel, rest = ''] = /^\/channels\/(\d+)\/(.*)$/.exec(path) ?? [];
    const kind = rest.includes('/reactions/')
      ? 'reactions'
      : /^messages/.test(rest) && method !== 'GET'
        ? 'messages'
        : null;
    if (channel === undefined || kind === null) return { status: 200 };
    const { limit, ms } = this.buckets[kind] ?? { limit: 50, ms: 1000 };
    const now = Date.now();
    const key = `${kind}:${method}:${channel}`;
    const before = this.#used.get(key);
    const used = before !== undefined && before.until > now ? before : { left: limit, until: now + ms };
    this.#used.set(key, used);
    const seconds = String(Math.max(0.001, (used.until - now) / 1000));
    const headers = {
      'x-ratelimit-limit': String(limit),
      'x-ratelimit-remaining': String(Math.max(0, used.left - 1)),
      'x-ratelimit-reset': String(used.until / 1000),
      'x-ratelimit-reset-after': seconds,
      'x-ratelimit-bucket': `bucket-${kind}-${method}`,
    };
    used.left -= 1;
    if (used.left >= 0) return { status: 200, headers };
    const body = { message: 'You are being rate limited.', retry_after: Number(seconds), global: false };
    return { status: 429, body, headers: { ...headers, 'retry-after': seconds, 'x-ratelimit-scope': 'user' } };
  }

  #faultFor({ method, path }: Call): Fault | undefined {
    for (const [kind, faults] of this.#faults) {
      const [verb, words = ''] = kind.split(' ');
      if (verb === method && path.includes(words) && faults.length > 0) return faults.shift();
    }
    return undefined;
  }

  #serveFile({ pathname }: URL, response: ServerResponse): void {
    const bytes = this.files.get(pathname);
    response.writeHead(bytes === undefined ? 404 : 200).end(bytes);
  }
}

function faultAnswer({ status, body = {}, headers = {}, html }: Exclude<Fault, string>): Answer {
  if (html) return { status, body: '<html>Bad Gateway</html>', headers: { ...headers, 'content-type': 'text/html' } };
  return { status, body, headers };
}

function send(response: ServerResponse, { status, body, headers = {} }: Answer): void {
  if (body === undefined) return void response.writeHead(status, headers).end();
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
}

async function readBody(request: IncomingMessage, raw: Buffer): Promise<Pick<Call, 'body' | 'files'>> {
  const type = request.headers['content-type'] ?? '';
  if (!type.startsWith('multipart/')) return { body: raw.length === 0 ? {} : JSON.parse(raw.toString()), files: [] };
  const form = await new Response(raw, { headers: { 'content-type': type } }).formData();
  const files: { name: string; bytes: Uint8Array }[] = [];
  for (const [, value] of form) {
    if (typeof value !== 'string') files.push({ name: value.name, bytes: new Uint8Array(await value.arrayBuffer()) });
  }
  return { body: JSON.parse(String(form.get('payload_json') ?? '{}')), files };
}
