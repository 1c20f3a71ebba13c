import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';

/** What the server keeps until it is acknowledged. */
interface KeptFrame {
  readonly id: string;
  readonly frame: Readonly<Record<string, unknown>>;
  /** Over which connection it was brought last, and when; null before. */
  brought: { readonly socket: WebSocket; readonly at: number } | null;
  times: number;
  readonly taken: (response: Record<string, unknown>) => void;
}

/** What a client answered. */
export interface StreamAnswer {
  readonly code: number;
  readonly messageId: string;
  readonly data: Record<string, unknown>;
  readonly headers: Record<string, unknown>;
  readonly raw: string;
}

/**
 * The connections of DingTalk's stream mode: each is opened with a ticket that counts once. A frame goes to one of them, is
 * kept until it is acknowledged, and is brought again when it is not, in the order in which it was said.
 */
export class StreamServer {
  readonly answers: StreamAnswer[] = [];
  /** So long after it was brought a frame is brought again. */
  againMs = 400;
  /** So long after it asked for the next connection the server closes one. */
  leaveMs = 300;
  opened = 0;
  /** Called with each connection before it is told anything. */
  onOpen: (() => void) | null = null;
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #tickets = new Set<string>();
  readonly #sockets = new Set<WebSocket>();
  readonly #leaving = new Set<WebSocket>();
  readonly #frozen = new Set<WebSocket>();
  readonly #kept: KeptFrame[] = [];
  readonly #again: NodeJS.Timeout;
  #next = 1;

  constructor() {
    this.#again = setInterval(() => this.#bringAgain(), 20);
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** How many frames nobody acknowledged. */
  get unacknowledged(): number {
    return this.#kept.length;
  }

  /** How often the kept frame at a position was brought. */
  times(position: number): number {
    return this.#kept[position]?.times ?? 0;
  }

  /** The connections that are open hear and say nothing any more, as behind a network that forgot them. */
  freeze(): void {
    for (const socket of this.#sockets) {
      this.#frozen.add(socket);
      socket.pause();
    }
  }

  thaw(): void {
    for (const socket of this.#frozen) socket.terminate();
    this.#frozen.clear();
  }

  ticket(): string {
    const ticket = `ticket-${this.#next++}`;
    this.#tickets.add(ticket);
    return ticket;
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = new URL(request.url ?? '/', 'http://fake');
    if (url.pathname !== '/connect' || !this.#tickets.delete(url.searchParams.get('ticket') ?? '')) {
      socket.end('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n');
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (connection) => this.#accept(connection));
  }

  #accept(socket: WebSocket): void {
    this.#sockets.add(socket);
    this.opened += 1;
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      this.#leaving.delete(socket);
      // What it did not acknowledge goes to the next one at once.
      for (const kept of this.#kept) if (kept.brought?.socket === socket) kept.brought = null;
    });
    socket.on('message', (data) => this.#heard(String(data)));
    this.onOpen?.();
    this.system('CONNECTED', {}, socket);
    this.system('REGISTERED', {}, socket);
    for (const kept of this.#kept) if (kept.brought === null) this.#bring(kept, socket);
  }

  /** Keeps what is brought until it is acknowledged; resolves with what the acknowledgement says. */
  keep(type: string, topic: string, data: unknown, more: object = {}): Promise<Record<string, unknown>> {
    const { promise, resolve } = Promise.withResolvers<Record<string, unknown>>();
    const id = `frame-${this.#next++}`;
    const frame = this.frame(type, topic, data, { messageId: id, ...more });
    const kept: KeptFrame = { id, frame, brought: null, times: 0, taken: resolve };
    this.#kept.push(kept);
    const socket = this.#anyone();
    if (socket !== null) this.#bring(kept, socket);
    return promise;
  }

  frame(type: string, topic: string, data: unknown, headers: object): Record<string, unknown> {
    return {
      specVersion: '1.0',
      type,
      headers: {
        ...{ appId: 'app-1', connectionId: 'connection-1', contentType: 'application/json', time: String(Date.now()) },
        ...{ topic, ...headers },
      },
      data: JSON.stringify(data),
    };
  }

  /** Sends something as it is, once; nobody waits for an answer to it. */
  push(frame: Readonly<Record<string, unknown>>): void {
    this.#anyone()?.send(JSON.stringify(frame));
  }

  system(topic: string, data: unknown, socket = this.#anyone()): string {
    const messageId = `system-${this.#next++}`;
    socket?.send(JSON.stringify(this.frame('SYSTEM', topic, data, { messageId })));
    return messageId;
  }

  /** Asks every client for its next connection, and closes these a little later. */
  disconnect(): void {
    for (const socket of this.#sockets) {
      this.#leaving.add(socket);
      this.system('disconnect', { reason: 'persistent connection is timeout' }, socket);
      setTimeout(() => socket.close(), this.leaveMs).unref();
    }
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  async close(): Promise<void> {
    clearInterval(this.#again);
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #anyone(): WebSocket | null {
    const [socket] = [...this.#sockets].filter(
      (each) => each.readyState === each.OPEN && !this.#leaving.has(each) && !this.#frozen.has(each),
    );
    return socket ?? null;
  }

  #bring(kept: KeptFrame, socket: WebSocket): void {
    kept.brought = { socket, at: performance.now() };
    kept.times += 1;
    socket.send(JSON.stringify(kept.frame));
  }

  #bringAgain(): void {
    const socket = this.#anyone();
    if (socket === null) return;
    for (const kept of this.#kept) {
      if (kept.brought === null || performance.now() - kept.brought.at > this.againMs) this.#bring(kept, socket);
    }
  }

  #heard(text: string): void {
    const { code, headers, data } = JSON.parse(text) as { code: number; headers: Record<string, string>; data: string };
    const messageId = headers.messageId ?? '';
    const said = readObject(data);
    this.answers.push({ code, messageId, data: said, headers, raw: data });
    const at = this.#kept.findIndex(({ id }) => id === messageId);
    const kept = this.#kept[at];
    if (kept === undefined || code !== 200) return;
    if (said.status === 'LATER') return;
    this.#kept.splice(at, 1);
    kept.taken(said);
  }
}

/** An answer to a ping holds whatever the ping held. */
function readObject(text: string): Record<string, unknown> {
  try {
    return { ...(JSON.parse(text) as object) };
  } catch {
    return {};
  }
}
