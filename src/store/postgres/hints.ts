import type pg from 'pg';
import type { Effects } from '../transaction.ts';
import { ask, connectAlone } from './connection.ts';
import { answeredWithin, type Deadlines } from './deadlines.ts';

const CHANNEL = 'moirai';
const COALESCE_MS = 20;
const RECONNECT_MS = 2000;
const MAX_PAYLOAD = 7000;
/** Of a notification that is no hint of ours, so much is in the log. */
const SHOWN_CHARS = 200;

interface HintListener {
  heard(effects: Effects): void;
  /** Something went wrong that stopped nothing. */
  problem(message: string, details: Readonly<Record<string, unknown>>): void;
}

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
  readonly #deadlines: Deadlines;
  readonly #listener: HintListener;
  readonly #self = Math.random().toString(36).slice(2);
  #client: pg.Client | null = null;
  #wanted = false;
  #closed = false;
  #pending: Effects | null = null;
  #timer: NodeJS.Timeout | null = null;
  #probing: NodeJS.Timeout | null = null;
  /** What was asked last; the next waits for it. */
  #asked: Promise<void> = Promise.resolve();
  #sending = false;

  constructor(options: pg.ClientConfig, deadlines: Deadlines, listener: HintListener) {
    this.#options = options;
    this.#deadlines = deadlines;
    this.#listener = listener;
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
    if (this.#probing !== null) clearInterval(this.#probing);
    this.#client?.connection.stream.destroy();
    this.#client = null;
  }

  async #connect(): Promise<void> {
    const again = (): void => {
      if (this.#closed) return;
      setTimeout(() => void this.#connect(), RECONNECT_MS).unref();
    };
    let client: pg.Client;
    try {
      client = await connectAlone(this.#options, this.#deadlines);
    } catch {
      again(); // Polling goes on meanwhile.
      return;
    }
    client.on('notification', ({ payload }) => this.#receive(payload ?? ''));
    client.once('end', () => {
      if (this.#client === client) this.#client = null;
      again();
    });
    if (this.#closed) {
      client.connection.stream.destroy();
      return;
    }
    this.#client = client;
    // A connection that only listens does not notice that nothing comes through any more.
    this.#probing ??= setInterval(() => void this.#ask('SELECT 1'), this.#deadlines.totalMs).unref();
    await this.#ask(`LISTEN ${CHANNEL}`);
  }

  /** A connection that does not answer in time is destroyed, and another one made. */
  #ask(sql: string, ...params: string[]): Promise<void> {
    const client = this.#client;
    if (client === null) return Promise.resolve();
    this.#asked = this.#asked.then(() =>
      answeredWithin(this.#deadlines.tryMs, client, () => ask(client, sql, ...params)).then(
        () => undefined,
        () => {
          client.connection.stream.destroy();
        },
      ),
    );
    return this.#asked;
  }

  #receive(payload: string): void {
    const hint = parseHint(payload);
    if (hint === null) {
      const details = { channel: CHANNEL, payload: payload.slice(0, SHOWN_CHARS) };
      this.#listener.problem('notification of another program ignored', details);
      return;
    }
    if (hint.from === this.#self) return;
    this.#listener.heard({ queues: new Set(hint.queues), nextDeadline: hint.nextDeadline });
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
    // A lost hint costs a moment, not an event.
    void this.#ask('SELECT pg_notify(?, ?)', CHANNEL, payload).then(() => {
      this.#sending = false;
      if (this.#pending !== null) this.#flushSoon();
    });
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
