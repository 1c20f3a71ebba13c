import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { QqGateway } from './qq-gateway.ts';
import { QqMessages, QqRefusal } from './qq-messages.ts';

export interface QqCall {
  readonly method: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Makes a call that sends a message go wrong. */
export type QqFault =
  | { readonly status: number; readonly code?: number; readonly retryAfter?: number }
  | { readonly html: number }
  /** It is done, and the answer is lost. */
  | 'lost';

interface Upload {
  readonly size: number;
  readonly parts: Map<number, Buffer>;
  readonly finished: Set<number>;
}

const BLOCK = 4 * 1024 * 1024;
const MOST_AT_ONCE = 10 * 1024 * 1024;

/**
 * QQ on loopback: gives access tokens, is a gateway, takes messages by its own rules, keeps files, and wants to hear of
 * presses. Errors come as QQ has them, some of them with status 200.
 */
export class QqServer {
  readonly appId = '102030405';
  readonly secret = 'DG5g3B4j9X2KOErG';
  readonly messages = new QqMessages();
  readonly gateway: QqGateway;
  readonly calls: QqCall[] = [];
  /** By what they are called in the address of an attachment. */
  readonly attachments = new Map<string, Uint8Array>();
  /** The codes that presses were answered with. */
  readonly presses = new Map<string, unknown>();
  /** By message, the emoji under it. */
  readonly reactions = new Map<string, Set<string>>();
  /** The AppSecret is not good any more. */
  revoked = false;
  /** Seconds for which a token is good. */
  tokenSeconds = 7200;
  tokensGiven = 0;
  /** What may be sent today is not used up. */
  takesFiles = true;
  /** Called when a message of the bot was taken, before it is answered. */
  onTaken: (() => void) | null = null;
  readonly #server: Server;
  readonly #faults: QqFault[] = [];
  readonly #uploads = new Map<string, Upload>();
  #token = '';

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.gateway = new QqGateway(this.#server, (token) => this.#isToken(token));
  }

  static async start(): Promise<QqServer> {
    const server = new QqServer();
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The next calls that send something go wrong, one fault each. */
  failNext(...faults: QqFault[]): void {
    this.#faults.push(...faults);
  }

  /** The token is not good any more, although it should be. */
  dropToken(): void {
    this.#token = '';
  }

  callsTo(method: string, path: RegExp): QqCall[] {
    return this.calls.filter((call) => call.method === method && path.test(call.path));
  }

  /** Keeps a file that somebody sends; returns its address, without its scheme as QQ has it. */
  keepFile(bytes: Uint8Array): string {
    const name = `file${this.attachments.size + 1}`;
    this.attachments.set(name, bytes);
    return `${this.url.replace(/^http:/, '')}/download/${name}?rkey=signed`;
  }

  async close(): Promise<void> {
    this.gateway.stop();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #isToken(token: string): boolean {
    return !this.revoked && token !== '' && token === this.#token;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname: path } = new URL(request.url ?? '/', 'http://qq');
    const raw = await readBody(request);
    const method = request.method ?? 'GET';
    if (path.startsWith('/download/')) return void this.#give(path.slice('/download/'.length), response);
    if (path.startsWith('/upload/')) return void this.#takePart(path, raw, response);
    const body = raw.length === 0 ? {} : (JSON.parse(raw.toString('utf8')) as Record<string, unknown>);
    if (path === '/app/getAppAccessToken') return void this.#giveToken(body, response);
    if (request.headers.accept !== 'application/json')
      return void answer(response, 400, { code: 100007, message: 'appid invalid' });
    const [, token = ''] = /^QQBot (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (!this.#isToken(token)) return void answer(response, 401, { code: 11243, message: 'token not pass' });
    this.calls.push({ method, path: decodeURIComponent(path), body });
    this.#answer({ method, path: decodeURIComponent(path), body }, response);
  }

  #answer(call: QqCall, response: ServerResponse): void {
    const isMessage = call.method === 'POST' && /\/(?:stream_)?messages$/.test(call.path);
    const fault = isMessage ? this.#faults.shift() : undefined;
    if (fault !== undefined && fault !== 'lost') return void fail(response, fault);
    try {
      const done = this.#perform(call);
      if (isMessage) this.onTaken?.();
      if (fault === 'lost') response.destroy();
      else answer(response, done === null ? 204 : 200, done);
    } catch (thrown) {
      if (!(thrown instanceof QqRefusal)) throw thrown;
      const { status, code, message, data } = thrown;
      answer(response, status, { code, err_code: code, message, trace_id: 'trace', ...(data ? { data } : {}) });
    }
  }

  #perform({ method, path, body }: QqCall): object | null {
    if (path === '/gateway') return { url: `${this.url.replace('http', 'ws')}/websocket` };
    if (path === '/users/@me') return { id: '777000777', username: 'Moirai', bot: true };
    const [, interaction] = /^\/interactions\/(.+)$/.exec(path) ?? [];
    if (method === 'PUT' && interaction !== undefined) {
      this.presses.set(interaction, body.code);
      return null;
    }
    const [, place = '', what] = /^(\/(?:v2\/users|v2\/groups|channels|dms)\/[^/]+)\/(\w+)/.exec(path) ?? [];
    if (method === 'POST' && what === 'messages') return this.messages.send(place, body);
    if (method === 'POST' && what === 'stream_messages' && place.startsWith('/v2/users')) {
      return this.messages.stream(place, body);
    }
    if (method === 'POST' && what === 'files') return this.#takeFile(place, body);
    if (method === 'POST' && what === 'upload_prepare') return this.#prepareUpload(body);
    if (method === 'POST' && what === 'upload_part_finish') return this.#finishPart(body);
    if (what === 'messages') return this.#react(method, path);
    throw new QqRefusal(0, 'Not Found', 404);
  }

  #react(method: string, path: string): null {
    const [, message = '', emoji = ''] = /\/messages\/([^/]+)\/reactions\/(\d+\/\d+)$/.exec(path) ?? [];
    const signs = this.reactions.get(message) ?? new Set();
    this.reactions.set(message, signs);
    if (method === 'DELETE' && !signs.delete(emoji)) throw new QqRefusal(620004, '没有设置过该表情表态');
    if (method === 'PUT' && signs.has(emoji)) throw new QqRefusal(620003, '已经设置过该表情表态');
    if (method === 'PUT') signs.add(emoji);
    return null;
  }

  #giveToken({ appId, clientSecret }: Record<string, unknown>, response: ServerResponse): void {
    if (appId !== this.appId) return void answer(response, 200, { code: 100007, message: 'appid invalid' });
    if (clientSecret !== this.secret || this.revoked) {
      return void answer(response, 200, { code: 100016, message: 'invalid appid or secret' });
    }
    this.tokensGiven += 1;
    this.#token = `token-${this.tokensGiven}`;
    answer(response, 200, { access_token: this.#token, expires_in: String(this.tokenSeconds) });
  }

  #takeFile(place: string, body: Record<string, unknown>): object {
    if (!this.takesFiles) throw new QqRefusal(40093002, '超过今天发送文件容量上限');
    const { file_type, file_name, file_data, upload_id } = body;
    const bytes = upload_id === undefined ? Buffer.from(String(file_data), 'base64') : this.#joined(String(upload_id));
    if (upload_id === undefined && bytes.length > MOST_AT_ONCE) throw new QqRefusal(850031, '上传文件超过大小限制');
    if (file_type === 1 && !/\.(?:png|jpe?g)$/i.test(String(file_name)))
      throw new QqRefusal(850019, '不支持的文件格式');
    const info = `info-${this.messages.files.size + 1}`;
    // What was brought for one place cannot be sent to another.
    this.messages.files.set(`${place} ${info}`, { type: Number(file_type), name: String(file_name), bytes });
    return { file_uuid: `uuid-${info}`, file_info: info, ttl: 300 };
  }

  #prepareUpload({ file_size }: Record<string, unknown>): object {
    const id = `upload_${this.#uploads.size + 1}`;
    const size = Number(file_size);
    this.#uploads.set(id, { size, parts: new Map(), finished: new Set() });
    const parts = Array.from({ length: Math.ceil(size / BLOCK) }, (_, index) => ({
      ...{ index: index + 1, presigned_url: `${this.url}/upload/${id}/${index + 1}?sign=x` },
      block_size: String(Math.min(BLOCK, size - index * BLOCK)),
    }));
    return { upload_id: id, block_size: String(BLOCK), parts, upload_config: { concurrency: 1 } };
  }

  #takePart(path: string, bytes: Buffer, response: ServerResponse): void {
    const [, , id = '', index] = path.split('/');
    this.#uploads.get(id)?.parts.set(Number(index), bytes);
    response.writeHead(200).end();
  }

  #finishPart({ upload_id, part_index, block_size, md5 }: Record<string, unknown>): object {
    const upload = this.#uploads.get(String(upload_id));
    const part = upload?.parts.get(Number(part_index));
    const isWhole = part?.length === Number(block_size) && createHash('md5').update(part).digest('hex') === md5;
    if (!isWhole) throw new QqRefusal(40093001, '文件上传失败，请重试');
    upload?.finished.add(Number(part_index));
    return {};
  }

  #joined(id: string): Buffer {
    const { size, parts, finished } = this.#uploads.get(id) ?? { size: -1, parts: new Map(), finished: new Set() };
    const bytes = Buffer.concat([...finished].sort((a, b) => a - b).map((index) => parts.get(index) ?? Buffer.of()));
    if (bytes.length !== size) throw new QqRefusal(40093001, '文件上传失败，请重试');
    return bytes;
  }

  #give(name: string, response: ServerResponse): void {
    const bytes = this.attachments.get(name);
    if (bytes === undefined) return void response.writeHead(404).end();
    response.writeHead(200).end(bytes);
  }
}

function fail(response: ServerResponse, fault: Exclude<QqFault, 'lost'>): void {
  if ('html' in fault) return void response.writeHead(fault.html, { 'content-type': 'text/html' }).end('<h1>Bad</h1>');
  const { status, code = 0, retryAfter } = fault;
  if (retryAfter !== undefined) response.setHeader('retry-after', String(retryAfter));
  answer(response, status, { ...(code === 0 ? {} : { code, err_code: code }), message: `fault ${status}` });
}

function answer(response: ServerResponse, status: number, body: object | null): void {
  if (response.destroyed) return;
  response.setHeader('x-tps-trace-id', 'trace');
  if (body === null) return void response.writeHead(status).end();
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
