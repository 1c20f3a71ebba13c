import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { SlackDelivery } from './slack-delivery.ts';
import { SLACK_METHODS, type SlackArgs, SlackRefusal } from './slack-methods.ts';
import { SlackWorkspace } from './slack-workspace.ts';

/** Makes a call go wrong: a refusal, a status, a limit, or an answer that is lost. */
export type SlackFault =
  | { readonly error: string }
  | { readonly status: number }
  | { readonly retryAfter: string | null }
  | { readonly answer: unknown }
  /** It is done, and the answer is lost. */
  | 'lost';

export interface SlackCall {
  readonly method: string;
  readonly args: SlackArgs;
}

const MOST_CALLS = 5000;
const PING_MS = 1000;

/** Slack on loopback: its Web API, its sockets, its files, and the addresses it gives out for answers. */
export class SlackServer {
  readonly token = 'xoxb-1-secret-of-the-bot';
  readonly appToken = 'xapp-1-secret-of-the-app';
  readonly workspace = new SlackWorkspace();
  readonly delivery: SlackDelivery;
  readonly calls: SlackCall[] = [];
  /** What was answered at the addresses for answers, by their number. */
  readonly answers = new Map<string, Record<string, unknown>>();
  revoked = false;
  /** The token is that of a person. */
  isUserToken = false;
  onTaken: (() => void) | null = null;
  readonly #faults = new Map<string, SlackFault[]>();
  readonly #server: Server;
  readonly #upgrades = new WebSocketServer({ noServer: true });
  readonly #pinging: NodeJS.Timeout;

  private constructor(mode: 'socket' | 'http') {
    this.delivery = new SlackDelivery(mode, 'a1b2c3-signing-secret');
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    this.#server.on('upgrade', (request, socket, head) => {
      this.#upgrades.handleUpgrade(request, socket, head, (opened) => this.#welcome(opened));
    });
    this.#pinging = setInterval(() => {
      for (const socket of this.delivery.sockets) if (!socket.isPaused) socket.ping();
    }, PING_MS);
  }

  static async start(mode: 'socket' | 'http'): Promise<SlackServer> {
    const fake = new SlackServer(mode);
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  callsOf(method: string): readonly SlackArgs[] {
    return this.calls.filter((call) => call.method === method).map(({ args }) => args);
  }

  failNext(method: string, fault: SlackFault, times = 1): void {
    const faults = this.#faults.get(method) ?? [];
    this.#faults.set(method, [...faults, ...Array.from({ length: times }, () => fault)]);
  }

  cut(): void {
    this.delivery.cut();
    this.#server.closeAllConnections();
  }

  /** Tells a socket that it will be ended, as Slack does with each from time to time. */
  refresh(reason = 'warning'): void {
    for (const socket of this.delivery.sockets) socket.send(JSON.stringify({ type: 'disconnect', reason }));
  }

  /** The sockets stay open, and neither hear nor say anything any more, not even that they are there. */
  fallSilent(): void {
    for (const socket of this.delivery.sockets) socket.pause();
  }

  async close(): Promise<void> {
    clearInterval(this.#pinging);
    this.delivery.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #welcome(socket: WebSocket): void {
    socket.on('error', () => undefined);
    socket.send(JSON.stringify({ type: 'hello', num_connections: this.delivery.connections + 1, debug_info: {} }));
    this.delivery.connected(socket);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const [, area = '', name = '', ...rest] = new URL(request.url ?? '/', this.url).pathname.split('/');
    if (area === 'api') return this.#call(name, request, body, response);
    if (area === 'actions' || area === 'commands') {
      this.answers.set(name, JSON.parse(body.toString('utf8')) as Record<string, unknown>);
      return void response.end('ok');
    }
    const file = this.workspace.files.get(area === 'upload' ? (rest[0] ?? '') : (name.split('-')[1] ?? ''));
    if (file === undefined) return void response.writeHead(404).end();
    if (area === 'upload') {
      file.bytes = new Uint8Array(body);
      return void response.end(`OK - ${body.length}`);
    }
    const isAllowed = request.headers.authorization === `Bearer ${this.token}`;
    response.writeHead(200, { 'content-type': isAllowed ? file.mime : 'text/html' });
    response.end(isAllowed ? file.bytes : '<!DOCTYPE html><title>Sign in</title>');
  }

  #call(method: string, request: IncomingMessage, body: Buffer, response: ServerResponse): void {
    const args = parseArgs(body.toString('utf8'));
    this.calls.push({ method, args });
    if (this.calls.length > MOST_CALLS) this.calls.shift();
    const fault = this.#faults.get(method)?.shift();
    if (fault !== undefined && fault !== 'lost') {
      answerFault(fault, response);
      return;
    }
    let answer: Record<string, unknown>;
    try {
      answer = { ok: true, ...this.#do(method, args, request.headers.authorization) };
    } catch (thrown) {
      if (!(thrown instanceof SlackRefusal)) throw thrown;
      answer = { ok: false, error: thrown.message };
    }
    if (method === 'chat.postMessage' && answer.ok === true) this.onTaken?.();
    if (fault === 'lost') return void response.destroy();
    sendJson(response, answer);
  }

  #do(method: string, args: SlackArgs, authorization: string | undefined): Record<string, unknown> {
    const isApp = method === 'apps.connections.open';
    if (this.revoked) throw new SlackRefusal('invalid_auth');
    if (authorization !== `Bearer ${isApp ? this.appToken : this.token}`) throw new SlackRefusal('invalid_auth');
    const { self, team } = this.workspace;
    if (isApp) return { url: `${this.url.replace('http', 'ws')}/link/?ticket=${this.calls.length}&app_id=A1` };
    if (method === 'auth.test') {
      const bot = this.isUserToken ? {} : { bot_id: self.bot };
      return {
        url: 'https://test.slack.com/',
        team: 'Test',
        user: self.name,
        team_id: team,
        user_id: self.user,
        ...bot,
      };
    }
    const make = SLACK_METHODS[method];
    if (make === undefined) throw new SlackRefusal('unknown_method');
    return make(this.workspace, args, this.url);
  }
}

/** What is not text comes as JSON in a field of the form. */
function parseArgs(body: string): SlackArgs {
  const parse = (value: string): unknown => {
    if (!/^[[{]|^(?:true|false)$/.test(value)) return value;
    try {
      return JSON.parse(value);
    } catch {
      return value;
    }
  };
  const texts = new Set(['text', 'markdown_text']);
  return Object.fromEntries(
    [...new URLSearchParams(body)].map(([name, value]) => [name, texts.has(name) ? value : parse(value)]),
  );
}

function answerFault(fault: Exclude<SlackFault, 'lost'>, response: ServerResponse): void {
  if ('error' in fault) sendJson(response, { ok: false, error: fault.error });
  else if ('answer' in fault) sendJson(response, fault.answer);
  else if ('status' in fault) response.writeHead(fault.status, { 'content-type': 'text/html' }).end('<h1>Oops</h1>');
  else {
    const { retryAfter } = fault;
    response.writeHead(429, retryAfter === null ? {} : { 'retry-after': retryAfter });
    response.end(JSON.stringify({ ok: false, error: 'ratelimited' }));
  }
}

function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}
