import { KeptCursor } from '../cursor.ts';
import { fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import type { Self } from './parse.ts';
import { laterOf, snowflakeOf } from './snowflake.ts';
import type { Resumption } from './socket.ts';

/** A session as the next process goes on with it. */
export interface KeptSession {
  readonly resumption: Resumption;
  /** Everything up to here is durable. */
  readonly position: number;
  readonly self: Self;
}

/** What is known from before. */
export interface KeptProgress {
  readonly session: KeptSession | null;
  /** Until then nothing is missing, epoch milliseconds; null when there was nothing before. */
  readonly completeAt: number | null;
}

/** How far the inbox has everything: the session and its position. */
export class KeptSessions {
  readonly #cursor: KeptCursor;

  constructor(runtime: PlatformRuntime) {
    this.#cursor = new KeptCursor(runtime, 'session');
  }

  async read(): Promise<KeptProgress> {
    const fields = parsedFields(await this.#cursor.read());
    const session = fieldsOf(fields?.session);
    const [sessionId, url] = [textOf(session?.id, 256), textOf(session?.url, 512)];
    const position = integerOf(session?.position);
    const self = selfOf(session?.self);
    const isWhole = Boolean(sessionId && url) && position !== null && self !== null;
    return {
      session: isWhole ? { resumption: { sessionId: sessionId ?? '', url: url ?? '' }, position, self } : null,
      completeAt: integerOf(fields?.complete_at),
    };
  }

  moveTo({ session, completeAt }: KeptProgress): void {
    const kept = session && {
      id: session.resumption.sessionId,
      url: session.resumption.url,
      position: session.position,
      self: session.self,
    };
    this.#cursor.moveTo(JSON.stringify({ session: kept, complete_at: completeAt }));
  }

  flush(): Promise<void> {
    return this.#cursor.flush();
  }
}

function selfOf(value: unknown): Self | null {
  const fields = fieldsOf(value);
  const [id, application] = [snowflakeOf(fields?.id), snowflakeOf(fields?.application)];
  const name = nameOf(fields?.name);
  if (id === null || application === null || name === null) return null;
  return { id, name, application, members: fields?.members === true };
}

/** The last durable message of a channel, and its guild; null for a direct chat. */
export interface Mark {
  readonly channel: string;
  readonly guild: string | null;
  readonly message: string;
}

const BUCKETS = 4;
/** As many channels of each kind are remembered at most, a quarter in each bucket. */
const MOST_IN_BUCKET = 128;

/**
 * The last durable message of each channel, so that what was said behind it can be asked for. Direct chats are remembered
 * apart: Discord lists the channels of guilds, but no direct chats.
 */
export class KeptMarks {
  readonly #buckets: readonly Bucket[];

  constructor(runtime: PlatformRuntime) {
    const names = Array.from({ length: BUCKETS }, (_, n) => n);
    this.#buckets = ['dm', 'guild'].flatMap((kind) => names.map((n) => new Bucket(runtime, `marks.${kind}.${n}`)));
  }

  async read(): Promise<void> {
    await Promise.all(this.#buckets.map((bucket) => bucket.read()));
  }

  find(channel: string): Mark | null {
    return this.#both(channel).flatMap((bucket) => bucket.marks.get(channel) ?? [])[0] ?? null;
  }

  all(): readonly Mark[] {
    return this.#buckets.flatMap((bucket) => [...bucket.marks.values()]);
  }

  /** Of a guild; null for the direct chats. */
  of(guild: string | null): readonly Mark[] {
    return this.all().filter((mark) => mark.guild === guild);
  }

  /** Resolves when a channel that was not known is kept: what is said there is asked for from here on. */
  async begin(mark: Mark): Promise<void> {
    if (this.find(mark.channel) !== null) return;
    const bucket = this.#bucketOf(mark);
    bucket.note(mark);
    await bucket.flush();
  }

  note(mark: Mark): void {
    const before = this.find(mark.channel)?.message ?? mark.message;
    this.#bucketOf(mark).note({ ...mark, message: laterOf(before, mark.message) });
  }

  forget(channel: string): void {
    for (const bucket of this.#both(channel)) bucket.forget(channel);
  }

  async flush(): Promise<void> {
    await Promise.all(this.#buckets.map((bucket) => bucket.flush()));
  }

  #bucketOf({ channel, guild }: Mark): Bucket {
    const [direct, other] = this.#both(channel);
    return (guild === null ? direct : other) as Bucket;
  }

  #both(channel: string): Bucket[] {
    const n = Number((BigInt(channel) >> 22n) % BigInt(BUCKETS));
    return [this.#buckets[n], this.#buckets[n + BUCKETS]] as Bucket[];
  }
}

class Bucket {
  readonly marks = new Map<string, Mark>();
  readonly #cursor: KeptCursor;

  constructor(runtime: PlatformRuntime, key: string) {
    this.#cursor = new KeptCursor(runtime, key);
  }

  async read(): Promise<void> {
    const fields = parsedFields(await this.#cursor.read());
    for (const each of listOf(fields?.marks)) {
      const [channel, guild, message] = listOf(each).map(snowflakeOf);
      if (channel && message) this.marks.set(channel, { channel, guild: guild ?? null, message });
    }
  }

  /** The ones that were used last stay. */
  note(mark: Mark): void {
    this.marks.delete(mark.channel);
    this.marks.set(mark.channel, mark);
    const [oldest] = this.marks.keys();
    if (this.marks.size > MOST_IN_BUCKET && oldest !== undefined) this.marks.delete(oldest);
    this.#keep();
  }

  forget(channel: string): void {
    if (this.marks.delete(channel)) this.#keep();
  }

  flush(): Promise<void> {
    return this.#cursor.flush();
  }

  #keep(): void {
    const marks = [...this.marks.values()].map(({ channel, guild, message }) => [channel, guild, message]);
    this.#cursor.moveTo(JSON.stringify({ marks }));
  }
}

function parsedFields(text: string | null) {
  try {
    return fieldsOf(JSON.parse(text ?? 'null'));
  } catch {
    return null;
  }
}
