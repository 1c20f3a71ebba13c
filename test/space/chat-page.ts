import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as ask, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const PAGE = fileURLToPath(new URL('../../src/space/page/', import.meta.url));
const ARTIFACTS = fileURLToPath(new URL('../../test-artifacts/', import.meta.url));

const HTML = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Chat</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="./page.css">
  </head>
  <body><main id="app"></main><script type="module" src="./main.ts"></script></body>
</html>`;

const CSS = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; }
#app { height: 100dvh; }`;

const SCRIPT = `import { h, render } from 'preact';
import { Chat } from '${PAGE}chat/chat.tsx';
import { KeyRing } from '${PAGE}data/key-ring.ts';
import { makeSource } from '${PAGE}data/source.ts';
const ring = new KeyRing(sessionStorage, localStorage);
const source = makeSource({ name: 'here', base: '' }, ring, (url, init) => fetch(url, init));
render(h(Chat, { source }), document.getElementById('app'));`;

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

/** What the gateway gives out with the page. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A page with nothing but the chat, before a gateway, with a wire between them that can be cut. */
export class ChatPage {
  url = '';
  readonly #folder: string;
  readonly #gateway: () => string;
  readonly #streams = new Set<ServerResponse>();
  #server: Server | null = null;
  #severed = false;

  constructor(gateway: () => string) {
    this.#gateway = gateway;
    mkdirSync(ARTIFACTS, { recursive: true });
    this.#folder = mkdtempSync(join(ARTIFACTS, 'chat-page-'));
  }

  async start(): Promise<void> {
    for (const [name, text] of Object.entries({ 'index.html': HTML, 'page.css': CSS, 'main.ts': SCRIPT })) {
      writeFileSync(join(this.#folder, name), text);
    }
    await build({
      root: this.#folder,
      configFile: false,
      base: './',
      logLevel: 'warn',
      build: { outDir: join(this.#folder, 'built'), assetsInlineLimit: 0, modulePreload: { polyfill: false } },
    });
    const server = createServer((request, response) => this.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  /** Breaks off every reply that is being told. */
  cut(): number {
    const open = [...this.#streams];
    for (const response of open) response.destroy();
    return open.length;
  }

  /** While it is severed, nobody answers at all. */
  set severed(severed: boolean) {
    this.#severed = severed;
    if (severed) this.cut();
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve) ?? resolve(null));
    rmSync(this.#folder, { recursive: true });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? '/').split('?')[0] ?? '/';
    if (path.startsWith('/v1/')) {
      if (this.#severed) response.destroy();
      else this.#pass(request, response);
      return;
    }
    const name = path === '/' ? 'index.html' : path.slice(1);
    try {
      const body = readFileSync(join(this.#folder, 'built', name));
      const type = TYPES[extname(name)] ?? 'application/octet-stream';
      response.writeHead(200, { 'content-type': type, 'content-security-policy': POLICY }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  }

  #pass(request: IncomingMessage, response: ServerResponse): void {
    const target = new URL(request.url ?? '/', this.#gateway());
    const { origin: _, host: _h, ...headers } = request.headers;
    const passed = ask(target, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      if (answer.headers['content-type']?.startsWith('text/event-stream')) this.#streams.add(response);
      answer.pipe(response);
      // A gateway that dies takes its answers along.
      answer.on('close', () => answer.complete || response.destroy());
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => {
      this.#streams.delete(response);
      passed.destroy();
    });
    request.pipe(passed);
  }
}
