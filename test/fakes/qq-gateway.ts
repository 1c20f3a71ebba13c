import type { Server } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';

/** An event as QQ brings it, over the socket or to a webhook. */
export interface QqPayload {
  readonly [field: string]: unknown;
}

interface Numbered {
  readonly s: number;
  readonly payload: QqPayload;
}

interface Session {
  readonly id: string;
  /** What was sent or is to be sent, by its number. */
  readonly log: Numbered[];
  /** The highest number. */
  last: number;
  /** What the client says that it has. */
  acknowledged: number;
  socket: WebSocket | null;
}

interface Frame {
  readonly op: number;
  readonly d?: unknown;
}

/** What the client has is kept for no longer than so many more. */
const MOST_KEPT = 500;

/** The gateway of QQ: numbers what it sends, keeps it while its session lasts, and sends it again from any number. */
export class QqGateway {
  readonly identified: { intents: number; shard: unknown }[] = [];
  readonly resumed: { session: string; seq: number }[] = [];
  /** What has no session to go into is lost, as it is on QQ. */
  lost = 0;
  heartbeatMs = 45_000;
  /** Heartbeats stay without an answer. */
  isSilent = false;
  /** The bot may not have more kinds of events than these. */
  allowedIntents = 0x7fffffff;
  /** Instead of saying hello. */
  closeWith: number | null = null;
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #sessions = new Map<string, Session>();
  readonly #isToken: (token: string) => boolean;
  #session: Session | null = null;
  #made = 0;

  constructor(http: Server, isToken: (token: string) => boolean) {
    this.#isToken = isToken;
    http.on('upgrade', (request, socket, head) => {
      this.#server.handleUpgrade(request, socket, head, (client) => this.#greet(client));
    });
  }

  get isConnected(): boolean {
    return this.#session?.socket != null;
  }

  /** There is a session that events go into, connected or not. */
  get hasSession(): boolean {
    return this.#session !== null;
  }

  /** How many events wait for the client to say that it has them. */
  get unacknowledged(): number {
    const session = this.#session;
    if (session === null) return 0;
    return session.log.filter(({ s, payload }) => s > session.acknowledged && !LIFE.has(payload.t)).length;
  }

  /** Sends an event, or keeps it until the session goes on. */
  dispatch(payload: QqPayload): void {
    if (this.#session === null) this.lost += 1;
    else this.#send(this.#session, payload);
  }

  /** Cuts the connection; its session stays. */
  cut(): void {
    for (const client of this.#server.clients) client.terminate();
    if (this.#session !== null) this.#session.socket = null;
  }

  /** Forgets the session, as after some minutes. */
  forget(): void {
    this.#sessions.clear();
    this.#session = null;
  }

  /** Says something to the client that is connected. */
  say(frame: Frame): void {
    for (const client of this.#server.clients) client.send(JSON.stringify(frame));
  }

  close(code = 1000): void {
    for (const client of this.#server.clients) client.close(code);
    if (this.#session !== null) this.#session.socket = null;
  }

  stop(): void {
    for (const client of this.#server.clients) client.terminate();
    this.#server.close();
  }

  #greet(client: WebSocket): void {
    client.on('error', () => undefined);
    if (this.closeWith !== null) return void client.close(this.closeWith);
    client.send(JSON.stringify({ op: 10, d: { heartbeat_interval: this.heartbeatMs } }));
    client.on('message', (data) => this.#hear(client, JSON.parse(String(data)) as Frame));
    client.on('close', () => {
      if (this.#session?.socket === client) this.#session.socket = null;
    });
  }

  #hear(client: WebSocket, { op, d }: Frame): void {
    const fields = (typeof d === 'object' && d !== null ? d : {}) as Record<string, unknown>;
    if (op === 1) return void this.#beat(client, typeof d === 'number' ? d : null);
    const token = String(fields.token).replace(/^QQBot /, '');
    if (!String(fields.token).startsWith('QQBot ') || !this.#isToken(token)) return void client.close(4004);
    if (op === 2) this.#identify(client, fields);
    else if (op === 6) this.#resume(client, String(fields.session_id), Number(fields.seq));
    else client.close(4001);
  }

  #beat(client: WebSocket, seq: number | null): void {
    const session = this.#session;
    if (session?.socket === client && seq !== null) session.acknowledged = Math.max(session.acknowledged, seq);
    if (!this.isSilent) client.send(JSON.stringify({ op: 11 }));
  }

  #identify(client: WebSocket, { intents, shard }: Record<string, unknown>): void {
    this.identified.push({ intents: Number(intents), shard });
    if ((Number(intents) & ~this.allowedIntents) !== 0) return void client.close(4014);
    this.#made += 1;
    const session: Session = { id: `session-${this.#made}`, log: [], last: 0, acknowledged: 0, socket: client };
    this.#sessions.set(session.id, session);
    this.#session = session;
    const user = { id: '777000777', username: 'Moirai', bot: true };
    this.#send(session, { op: 0, t: 'READY', d: { version: 1, session_id: session.id, user, shard: [0, 1] } });
  }

  #resume(client: WebSocket, id: string, seq: number): void {
    this.resumed.push({ session: id, seq });
    const session = this.#sessions.get(id);
    if (session === undefined) return void client.send(JSON.stringify({ op: 9, d: false }));
    session.socket = client;
    session.acknowledged = Math.max(session.acknowledged, seq);
    this.#session = session;
    for (const { s, payload } of session.log) if (s > seq) client.send(JSON.stringify({ ...payload, s }));
    this.#send(session, { op: 0, t: 'RESUMED', d: '' });
  }

  #send(session: Session, payload: QqPayload): void {
    const { log } = session;
    const s = ++session.last;
    log.push({ s, payload });
    while (log.length > MOST_KEPT && log[0]!.s <= session.acknowledged) log.shift();
    session.socket?.send(JSON.stringify({ ...payload, s }));
  }
}

const LIFE: ReadonlySet<unknown> = new Set(['READY', 'RESUMED']);
