import pg from 'pg';
import type { Effects } from '../transaction.ts';

const CHANNEL = 'moirai';
const COALESCE_MS = 20;
const RECONNECT_MS = 2000;
const MAX_PAYLOAD = 7000;

interface Hint {
  readonly from: string;
  readonly queues: readonly string[];
  readonly nextDeadline: number | null;
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
    const matters = effects.queues.size > 0 || effects.nextDeadline !== null;
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
    const hint = parseHint(payload);
    if (hint === null || hint.from === this.#self) return;
    this.#onHint({ queues: new Set(hint.queues), nextDeadline: hint.nextDeadline });
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
    const hint: Hint = { from: this.#self, ...effects, queues: [...effects.queues] };
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
  if (a === null) return { ...b, queues: new Set(b.queues) };
  const deadlines = [a.nextDeadline, b.nextDeadline].filter((at) => at !== null);
  return {
    queues: a.queues.union(b.queues),
    nextDeadline: deadlines.length === 0 ? null : Math.min(...deadlines),
  };
}

/** The channel is open to everybody who has the database: what is no hint of ours is passed over. */
function parseHint(payload: string): Hint | null {
  try {
    const { from, queues, nextDeadline } = JSON.parse(payload) as Partial<Record<keyof Hint, unknown>>;
    if (typeof from !== 'string' || !Array.isArray(queues)) return null;
    const names = queues.filter((name) => typeof name === 'string');
    return { from, queues: names, nextDeadline: typeof nextDeadline === 'number' ? nextDeadline : null };
  } catch {
    return null;
  }
}
