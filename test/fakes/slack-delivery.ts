import { createHmac } from 'node:crypto';
import type { WebSocket } from 'ws';

export type EnvelopeKind = 'events_api' | 'interactive' | 'slash_commands';

interface Envelope {
  readonly id: string;
  readonly kind: EnvelopeKind;
  readonly payload: Record<string, unknown>;
  /** What is said in one channel is brought in order. */
  readonly channel: string;
  attempts: number;
  sentAt: number;
  isUnderWay: boolean;
}

/** When an envelope was sent first and last, and when it was acknowledged. */
export interface Acknowledgement {
  readonly id: string;
  readonly payload: Record<string, unknown>;
  readonly sentAt: number;
  readonly lastSentAt: number;
  readonly ackedAt: number;
}

const MOST_ACKS = 500;
const MOST_AT_ONCE = 20;
const AT_ONCE_MS = 10;

/** Brings events to the app, by socket or by signed requests, again and again until they are acknowledged. */
export class SlackDelivery {
  readonly mode: 'socket' | 'http';
  readonly signingSecret: string;
  readonly sockets = new Set<WebSocket>();
  readonly acks: Acknowledgement[] = [];
  /** As many sockets were open at once. */
  mostConnections = 0;
  /** How long an acknowledgement is waited for. */
  retryMs = 500;
  /** Attempts at the same; what is not taken then is never brought again. */
  mostAttempts = Number.POSITIVE_INFINITY;
  /** What happens before the next connection is not brought at all. */
  forgets = false;
  readonly #pending = new Map<string, Envelope>();
  readonly #waiters = new Map<string, () => void>();
  readonly #posting = new Map<string, Promise<void>>();
  readonly #pump: NodeJS.Timeout;
  #door: string | null = null;
  #cutting = new AbortController();
  #count = 0;

  constructor(mode: 'socket' | 'http', signingSecret: string) {
    this.mode = mode;
    this.signingSecret = signingSecret;
    this.#pump = setInterval(() => this.#bringAll(), 50);
  }

  get pending(): number {
    return [...this.#pending.values()].filter(({ kind }) => kind === 'events_api').length;
  }

  get connections(): number {
    return this.sockets.size;
  }

  /** Resolves when it is acknowledged. */
  bring(kind: EnvelopeKind, payload: Record<string, unknown>, channel = ''): Promise<void> {
    if (this.forgets) return Promise.resolve();
    this.#count += 1;
    const id = `env-${this.#count}`;
    const envelope = { id, kind, payload, channel, attempts: 0, sentAt: 0, isUnderWay: false };
    this.#pending.set(id, envelope);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.set(id, resolve);
    this.#send(envelope);
    return promise;
  }

  /** What was not acknowledged is not brought again, and nothing is until somebody is connected. */
  forget(): void {
    for (const id of this.#pending.keys()) this.#drop(id);
    this.forgets = true;
  }

  bringTo(url: string | null): void {
    this.#door = url;
    if (url === null) return;
    for (const envelope of this.#pending.values()) envelope.sentAt = 0;
    this.#bringAll();
  }

  /** A socket is there: it gets what no other has acknowledged. */
  connected(socket: WebSocket): void {
    this.forgets = false;
    this.sockets.add(socket);
    this.mostConnections = Math.max(this.mostConnections, this.sockets.size);
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('message', (data) => this.#acknowledged(JSON.parse(String(data)) as { envelope_id: string }));
    for (const envelope of this.#pending.values()) this.#send(envelope);
  }

  cut(): void {
    for (const socket of this.sockets) socket.terminate();
    this.sockets.clear();
    this.#cutting.abort();
    this.#cutting = new AbortController();
  }

  close(): void {
    clearInterval(this.#pump);
    this.#door = null;
    this.cut();
  }

  /** A request as Slack signs it. */
  async post(body: string, contentType: string, headers: Record<string, string> = {}): Promise<number> {
    const time = String(Math.floor(Date.now() / 1000));
    const signed = { 'x-slack-request-timestamp': time, 'x-slack-signature': this.sign(time, body) };
    const signal = this.#cutting.signal;
    const all = { 'content-type': contentType, ...signed, ...headers };
    const response = await fetch(this.#door ?? '', { method: 'POST', headers: all, body, signal });
    await response.text();
    return response.status;
  }

  sign(time: string, body: string): string {
    return `v0=${createHmac('sha256', this.signingSecret).update(`v0:${time}:${body}`).digest('hex')}`;
  }

  #bringAll(): void {
    const now = performance.now();
    for (const envelope of this.#pending.values()) {
      if (envelope.sentAt === 0 || now - envelope.sentAt > this.retryMs) this.#send(envelope);
    }
  }

  #send(envelope: Envelope): void {
    // What people do with buttons and commands is brought once.
    if (envelope.kind !== 'events_api' && envelope.attempts > 0) return;
    if (envelope.attempts >= this.mostAttempts) this.#drop(envelope.id);
    else if (this.mode === 'socket') this.#sendBySocket(envelope);
    else if (!envelope.isUnderWay && this.#door !== null) this.#sendInTurn(envelope);
  }

  #sendInTurn(envelope: Envelope): void {
    envelope.isUnderWay = true;
    const before = this.#posting.get(envelope.channel) ?? Promise.resolve();
    const posting = before
      .then(() => this.#sendByPost(envelope))
      .finally(() => {
        envelope.isUnderWay = false;
        if (this.#posting.get(envelope.channel) === posting) this.#posting.delete(envelope.channel);
      });
    this.#posting.set(envelope.channel, posting);
  }

  #sendBySocket(envelope: Envelope): void {
    const socket = [...this.sockets].at(-1);
    if (socket === undefined || socket.readyState !== socket.OPEN || socket.isPaused) return;
    const { id, kind, payload, attempts } = envelope;
    const retry = attempts === 0 ? {} : { retry_attempt: attempts, retry_reason: 'timeout' };
    socket.send(
      JSON.stringify({
        envelope_id: id,
        type: kind,
        payload,
        accepts_response_payload: kind !== 'events_api',
        ...retry,
      }),
    );
    this.#noteSent(envelope);
  }

  async #sendByPost(envelope: Envelope): Promise<void> {
    if (!this.#pending.has(envelope.id)) return;
    const { kind, payload, attempts } = envelope;
    const retry: Record<string, string> =
      attempts === 0 ? {} : { 'x-slack-retry-num': String(attempts), 'x-slack-retry-reason': 'http_error' };
    this.#noteSent(envelope);
    const post = () => this.post(...bodyOf(kind, payload), retry).catch(() => 0);
    let status = await post();
    // A request that nobody answered is made again at once.
    for (let tries = 0; status === 0 && tries < MOST_AT_ONCE && this.#door !== null; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, AT_ONCE_MS));
      status = await post();
    }
    if (status === 200) this.#acknowledged({ envelope_id: envelope.id });
    else if (kind !== 'events_api') this.#drop(envelope.id);
    envelope.sentAt = performance.now();
  }

  #noteSent(envelope: Envelope): void {
    envelope.attempts += 1;
    envelope.sentAt = performance.now();
    this.#firstSent.set(envelope.id, this.#firstSent.get(envelope.id) ?? envelope.sentAt);
  }

  readonly #firstSent = new Map<string, number>();

  #acknowledged({ envelope_id: id }: { envelope_id: string }): void {
    const envelope = this.#pending.get(id);
    if (envelope === undefined) return;
    const ackedAt = performance.now();
    const { payload, sentAt: lastSentAt } = envelope;
    this.acks.push({ id, payload, sentAt: this.#firstSent.get(id) ?? ackedAt, lastSentAt, ackedAt });
    if (this.acks.length > MOST_ACKS) this.acks.shift();
    this.#drop(id);
  }

  #drop(id: string): void {
    this.#pending.delete(id);
    this.#firstSent.delete(id);
    this.#waiters.get(id)?.();
    this.#waiters.delete(id);
  }
}

/** Events are JSON, interactions JSON in a form, commands a form. */
function bodyOf(kind: EnvelopeKind, payload: Record<string, unknown>): [body: string, contentType: string] {
  if (kind === 'events_api') return [JSON.stringify(payload), 'application/json'];
  const fields = kind === 'interactive' ? { payload: JSON.stringify(payload) } : formFields(payload);
  return [new URLSearchParams(fields).toString(), 'application/x-www-form-urlencoded'];
}

function formFields(payload: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(payload).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : (JSON.stringify(value) ?? ''),
    ]),
  );
}
