import { readFileSync } from 'node:fs';
import { request as ask, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { BUILT_PAGE } from './browser.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

/** What the gateway gives out with the page. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The page as it is now before a gateway that may come back elsewhere, and a wire between them that can be cut. */
export class ChatPage {
  url = '';
  readonly #gateway: () => string;
  readonly #replies = new Set<ServerResponse>();
  #server: Server | null = null;
  #severed = false;

  constructor(gateway: () => string) {
    this.#gateway = gateway;
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => this.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/#chat`;
  }

  /** Breaks off every reply that is being told, and from then on nobody answers at all; how many there were. */
  sever(): number {
    this.#severed = true;
    const open = [...this.#replies];
    for (const response of open) response.destroy();
    return open.length;
  }

  mend(): void {
    this.#severed = false;
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve) ?? resolve(null));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? '/').split('?')[0] ?? '/';
    const type = TYPES[extname(path === '/' ? 'index.html' : path)];
    if (type === undefined) {
      if (this.#severed) response.destroy();
      else this.#pass(path, request, response);
      return;
    }
    const body = readFileSync(join(BUILT_PAGE, path === '/' ? 'index.html' : path));
    response.writeHead(200, { 'content-type': type, 'content-security-policy': POLICY }).end(body);
  }

  #pass(path: string, request: IncomingMessage, response: ServerResponse): void {
    const target = new URL(request.url ?? '/', this.#gateway());
    const { origin: _, host: _h, ...headers } = request.headers;
    const passed = ask(target, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      if (path === '/v1/chat') this.#replies.add(response);
      answer.pipe(response);
      // A gateway that dies takes its answers along.
      answer.on('close', () => answer.complete || response.destroy());
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => {
      this.#replies.delete(response);
      passed.destroy();
    });
    request.pipe(passed);
  }
}
