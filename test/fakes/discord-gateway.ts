import type { Server } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';

/** A dispatch as a session keeps it until it is resumed. */
interface Frame {
  readonly op: 0;
  readonly s: number;
  readonly t: string;
  readonly d: unknown;
}

/** What a client has identified for; it outlives its sockets. */
export interface GatewaySession {
  readonly id: string;
  readonly intents: number;
  readonly log: Frame[];
  socket: WebSocket | null;
  /** The position that the client has last told. */
  acknowledged: number;
}

export interface GatewayOptions {
  readonly token: () => string;
  /** What a session begins with. */
  readonly ready: (session: GatewaySession) => readonly { readonly t: string; readonly d: unknown }[];
  readonly refusedIntents: () => number;
}

/** Discord's gateway: hello, identify or resume, a log for each session, heartbeats. */
export class DiscordGateway {
  readonly sessions = new Map<string, GatewaySession>();
  /** How each connection began. */
  readonly beginnings: ('identify' | 'resume')[] = [];
  /** Codes with which clients closed. */
  readonly closes: number[] = [];
  /** Positions at which sessions were gone on with. */
  readonly resumedAt: number[] = [];
  heartbeatMs = 41_250;
  /** Heartbeats are not answered any more. */
  deaf = false;
  /** The next sockets are closed with these instead of being greeted. */
  readonly turnAway: number[] = [];
  readonly #options: GatewayOptions;
  readonly #server: WebSocketServer;
  readonly #sockets = new Set<WebSocket>();
  #count = 0;

  constructor(server: Server, options: GatewayOptions) {
    this.#options = options;
    this.#server = new WebSocketServer({ server });
    this.#server.on('connection', (socket) => this.#greet(socket));
  }

  /** Tells every session, whether somebody listens or not. */
  dispatch(t: string, d: unknown): void {
    for (const session of this.sessions.values()) this.tell(session, t, d);
  }

  tell(session: GatewaySession, t: string, d: unknown): void {
    const frame: Frame = { op: 0, s: (session.log.at(-1)?.s ?? 0) + 1, t, d };
    session.log.push(frame);
    session.socket?.send(JSON.stringify(frame));
  }

  /** Sends a frame as it is, with the next position, to everybody who listens. */
  push(frame: Record<string, unknown>): void {
    for (const session of this.sessions.values()) {
      const s = (session.log.at(-1)?.s ?? 0) + 1;
      session.log.push({ op: 0, s, t: 'ODD', d: {} });
      session.socket?.send(JSON.stringify({ s, ...frame }));
    }
  }

  /** An opcode to everybody who listens: 1 asks for a heartbeat, 7 to connect again, 9 says that the session is over. */
  order(op: 1 | 7 | 9, d: unknown = null): void {
    for (const socket of this.#sockets) socket.send(JSON.stringify({ op, d }));
  }

  cut(code?: number): void {
    for (const socket of this.#sockets) {
      if (code === undefined) socket.terminate();
      else socket.close(code);
    }
  }

  get isListenedTo(): boolean {
    return [...this.sessions.values()].some(({ socket }) => socket !== null);
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #greet(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', (code) => this.#left(socket, code));
    socket.on('message', (data) => this.#take(socket, JSON.parse(String(data)) as { op: number; d: unknown }));
    const code = this.turnAway.shift();
    if (code !== undefined) {
      socket.close(code);
      return;
    }
    socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: this.heartbeatMs } }));
  }

  #left(socket: WebSocket, code: number): void {
    this.#sockets.delete(socket);
    this.closes.push(code);
    for (const session of this.sessions.values()) {
      if (session.socket !== socket) continue;
      session.socket = null;
      // That ends the session, and not only the connection.
      if (code === 1000 || code === 1001) this.sessions.delete(session.id);
    }
  }

  #take(socket: WebSocket, { op, d }: { op: number; d: unknown }): void {
    if (op === 1) this.#beat(socket, d);
    else if (op === 2) this.#identify(socket, d as { token: string; intents: number });
    else if (op === 6) this.#resume(socket, d as { token: string; session_id: string; seq: number });
    else socket.close(4001);
  }

  #beat(socket: WebSocket, position: unknown): void {
    for (const session of this.sessions.values()) {
      if (session.socket === socket && typeof position === 'number') session.acknowledged = position;
    }
    if (!this.deaf) socket.send(JSON.stringify({ op: 11 }));
  }

  #identify(socket: WebSocket, { token, intents }: { token: string; intents: number }): void {
    this.beginnings.push('identify');
    if (token !== this.#options.token()) {
      socket.close(4004);
      return;
    }
    if ((intents & this.#options.refusedIntents()) !== 0) {
      socket.close(4014);
      return;
    }
    this.#count += 1;
    const session = { id: `session-${this.#count}`, intents, log: [], socket, acknowledged: 0 };
    this.sessions.set(session.id, session);
    for (const { t, d } of this.#options.ready(session)) this.tell(session, t, d);
  }

  #resume(socket: WebSocket, { token, session_id, seq }: { token: string; session_id: string; seq: number }): void {
    this.beginnings.push('resume');
    if (token !== this.#options.token()) {
      socket.close(4004);
      return;
    }
    const session = this.sessions.get(session_id);
    if (session === undefined) {
      socket.send(JSON.stringify({ op: 9, d: false }));
      return;
    }
    const last = session.log.at(-1)?.s ?? 0;
    if (!(seq >= 0 && seq <= last)) {
      socket.close(4007);
      return;
    }
    this.resumedAt.push(seq);
    session.socket = socket;
    session.acknowledged = seq;
    for (const frame of session.log) if (frame.s > seq) socket.send(JSON.stringify(frame));
    this.tell(session, 'RESUMED', { _trace: [] });
  }
}
