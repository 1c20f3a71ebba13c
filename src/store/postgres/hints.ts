import pg from 'pg';
import type { Effects } from '../transaction.ts';

const CHANNEL = 'moirai';
const COALESCE_MS = 20;
const RECONNECT_MS = 2000;
const MAX_PAYLOAD = 7000;

interface Hint {
  readonly from: string;
  readonly subscribers: readonly string[];
  readonly nextDeadline: number | null;
  readonly deliveries: boolean;
}

/**
 * Tells other instances that there is work. Sent after the commit and for many commits at once: inside it, NOTIFY
 * takes a lock that all commits of the server share. A hint may be lost; everybody polls as well.
 */
export class Hints {
  readonly #options: pg.ClientConfig;
  readonly #onHint: (effects: Effects) => void;
  readonly #self = Math.random().toString(36).slice(2);
  #client: pg.Client | null = null;
  #wanted = false;
  #closed = false;
  #pending: Effects | null = null;
  #timer: NodeJS.Timeout | null = null;
  #sending = false;

  constructor(options: pg.ClientConfig, onHint: (effects: Effects) => void) {
    this.#options = options;
    this.#onHint = onHint;
  }

  /** Starts hearing others, and thereby telling them. */
  listen(): void {
    if (this.#wanted || this.#closed) return;
    this.#wanted = true;
    void this.#connect();
  }

  send(effects: Effects): void {
    const matters = effects.subscribers.size > 0 || effects.nextDeadline !== null || effects.deliveries;
    if (!matters || !this.#wanted) return;
    this.#pending = merge(this.#pending, effects);
    this.#flushSoon();
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => undefined); // It may be broken already; that is as good as ended.
  }

  async #connect(): Promise<void> {
    const client = new pg.Client(this.#options);
    const retry = (): void => {
      if (this.#client === client) this.#client = null;
      if (this.#closed) return;
      setTimeout(() => void this.#connect(), RECONNECT_MS).unref();
    };
    client.once('end', retry);
    client.on('error', () => undefined); // `end` follows, and polling goes on meanwhile.
    client.on('notification', ({ payload }) => this.#receive(payload ?? ''));
    try {
      await client.connect();
      await client.query(`LISTEN ${CHANNEL}`);
      if (this.#closed) await client.end();
      else this.#client = client;
    } catch {
      await client.end().catch(() => undefined); // `end` was heard above and tries again.
    }
  }

  #receive(payload: string): void {
    const hint = JSON.parse(payload) as Hint;
    if (hint.from === this.#self) return;
    const { nextDeadline, deliveries } = hint;
    this.#onHint({ subscribers: new Set(hint.subscribers), nextDeadline, deliveries });
  }

  /** One at a time: behind a slow server hints would pile up. What comes meanwhile goes with the next one. */
  #flushSoon(): void {
    if (this.#timer !== null || this.#sending) return;
    this.#timer = setTimeout(() => this.#flush(), COALESCE_MS);
    this.#timer.unref();
  }

  #flush(): void {
    this.#timer = null;
    const effects = this.#pending;
    this.#pending = null;
    if (effects === null || this.#client === null) return;
    const hint: Hint = { from: this.#self, ...effects, subscribers: [...effects.subscribers] };
    const payload = JSON.stringify(hint);
    if (payload.length > MAX_PAYLOAD) return;
    this.#sending = true;
    const sent = (): void => {
      this.#sending = false;
      if (this.#pending !== null) this.#flushSoon();
    };
    // A lost hint costs a moment, not an event.
    this.#client.query('SELECT pg_notify($1, $2)', [CHANNEL, payload]).then(sent, sent);
  }
}

function merge(a: Effects | null, b: Effects): Effects {
  if (a === null) return { ...b, subscribers: new Set(b.subscribers) };
  const deadlines = [a.nextDeadline, b.nextDeadline].filter((at) => at !== null);
  return {
    subscribers: a.subscribers.union(b.subscribers),
    nextDeadline: deadlines.length === 0 ? null : Math.min(...deadlines),
    deliveries: a.deliveries || b.deliveries,
  };
}
