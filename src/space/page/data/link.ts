import type { ReadonlySignal } from '@preact/signals';
import { readDelta, readSnapshot, type SessionView } from '../protocol.ts';
import { AnswerError, sentenceOf } from './answer-error.ts';
import { readEvents, type ServerEvent } from './event-reader.ts';
import type { KeyRing } from './key-ring.ts';
import type { Source } from './source.ts';
import type { World } from './world.ts';

const PATH = '/v1/space/activity';
/** A stream says something every two seconds; after this long it is gone, whatever the connection pretends. */
const SILENCE_MS = 5_000;
const POLL_MS = 2_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5_000;
/** Answers of a version that knows no stream. */
const NO_STREAM = [404, 405, 406];
const NO_STREAM_WORDS = `it has no stream and is asked every ${POLL_MS / 1000} seconds`;

/** What it takes to wait before the next attempt. */
export interface Retrying {
  readonly ring: KeyRing;
  readonly random: () => number;
  /** Resolves after a while, or when the signal aborts. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface LinkParts extends Retrying {
  readonly world: World;
  /**
   * Whether to hold a stream. A browser opens six connections to one server, for all its pages together: streams that
   * held them all would leave none for anything else. Without a stream the source is asked every two seconds.
   */
  readonly streaming: ReadonlySignal<boolean>;
  /** Hears of sessions that vanished without a word. */
  readonly vanished: (source: Source, sessions: readonly SessionView[]) => void;
}

/** How long to wait before the next attempt: twice as long each time, and not all pages at once. */
export function backoff(attempt: number, random: () => number): number {
  const full = Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS);
  return full * (0.75 + random() * 0.25);
}

/** Follows one source until the signal aborts, however often it goes away. */
export async function follow(source: Source, parts: LinkParts, signal: AbortSignal): Promise<void> {
  let attempt = 0;
  while (!signal.aborted) {
    const given = parts.ring.given.value;
    const call = new Call(source, parts, signal);
    const why = await call.stay();
    if (signal.aborted) return;
    if (why === 'switch') continue;
    parts.world.gone(source.id, wordsOf(why));
    attempt = call.heard ? 0 : attempt + 1;
    await waitAfter(why, Math.max(attempt - 1, 0), given, parts, signal);
  }
}

/**
 * Waits after a failed attempt: longer each time, or, when the key was refused, for another key than the `given`-th or
 * for as long as the gateway says.
 */
export async function waitAfter(
  thrown: unknown,
  attempt: number,
  given: number,
  { ring, random, pause }: Retrying,
  signal: AbortSignal,
): Promise<void> {
  const refused = thrown instanceof AnswerError && (thrown.status === 401 || thrown.status === 429);
  if (!refused) return pause(backoff(attempt, random), signal);
  const another = new AbortController();
  const stop = ring.given.subscribe((count) => {
    if (count !== given) another.abort();
  });
  await pause((thrown.waitSeconds ?? 24 * 3600) * 1000, AbortSignal.any([signal, another.signal]));
  stop();
}

/** One connection, or one series of questions. */
class Call {
  /** Whether the source said anything: then the next attempt is a first one again. */
  heard = false;
  readonly #source: Source;
  readonly #parts: LinkParts;
  readonly #cut = new AbortController();
  readonly #switch = new AbortController();
  readonly #signal: AbortSignal;
  #silence: ReturnType<typeof setTimeout> | undefined;

  constructor(source: Source, parts: LinkParts, signal: AbortSignal) {
    this.#source = source;
    this.#parts = parts;
    this.#signal = AbortSignal.any([signal, this.#cut.signal, this.#switch.signal]);
  }

  /** Stays as long as the source does; returns the error that ended it, or that it is to be followed in the other way. */
  async stay(): Promise<unknown> {
    const stream = this.#parts.streaming.value;
    const stop = this.#parts.streaming.subscribe((now) => {
      if (now !== stream) this.#switch.abort();
    });
    try {
      await (stream ? this.#stay() : this.#poll(null, null));
      return new Error('it closed the connection');
    } catch (thrown) {
      if (this.#switch.signal.aborted) return 'switch';
      return this.#cut.signal.aborted ? new Error(`nothing was heard for ${SILENCE_MS / 1000} seconds`) : thrown;
    } finally {
      stop();
      clearTimeout(this.#silence);
      this.#cut.abort();
    }
  }

  async #stay(): Promise<void> {
    this.#markHeard();
    const { id } = this.#source;
    const seq = this.#parts.world.seqOf(id);
    const headers: Record<string, string> = { accept: 'text/event-stream' };
    if (seq > 0) headers['last-event-id'] = String(seq);
    const response = await this.#source.fetch(PATH, { headers, signal: this.#signal });
    this.#markHeard();
    if (NO_STREAM.includes(response.status)) return this.#poll(null, NO_STREAM_WORDS);
    if (!response.ok) throw await AnswerError.from(response);
    // An older version takes no notice of what is accepted, and answers with JSON.
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
    if (!isStream) return this.#poll(response, NO_STREAM_WORDS);
    if (response.body === null) return;
    for await (const event of readEvents(response.body, () => this.#markHeard())) this.#take(event);
  }

  #take(event: ServerEvent): void {
    const { world } = this.#parts;
    const { id } = this.#source;
    if (event === null) {
      // Before the first word, silence with a heartbeat shows nothing; after it, that nothing has changed.
      if (world.seqOf(id) > 0) world.heard(id);
    } else if (event.event === 'snapshot' || event.event === 'delta') {
      this.#apply(event.event === 'delta', JSON.parse(event.data), null);
    }
    this.heard = true;
  }

  #apply(isDelta: boolean, said: unknown, odd: string | null): void {
    const { world, vanished } = this.#parts;
    const { id } = this.#source;
    if (isDelta) {
      world.applyDelta(id, readDelta(said));
      return;
    }
    const snapshot = readSnapshot(said);
    const missing = world.applySnapshot(id, { ...snapshot, odd: odd ?? snapshot.odd });
    // Where not all are told of, a missing session may only have fallen off the end of the list.
    if (!snapshot.more) vanished(this.#source, missing);
  }

  /** Asks again and again; `odd` is said of a source that would have it no other way. */
  async #poll(first: Response | null, odd: string | null): Promise<void> {
    const { world, pause } = this.#parts;
    const { id } = this.#source;
    let etag: string | null = null;
    let response = first;
    while (true) {
      const headers: Record<string, string> = { accept: 'application/json' };
      if (etag !== null) headers['if-none-match'] = etag;
      // The changes since `after` are enough; a version without streams does not know them.
      const after = odd === null ? world.seqOf(id) : 0;
      const path = after > 0 ? `${PATH}?after=${after}` : PATH;
      this.#markHeard();
      response ??= await this.#source.fetch(path, { headers, signal: this.#signal });
      if (!response.ok && response.status !== 304) throw await AnswerError.from(response);
      const said: object | null = response.ok ? await response.json() : null;
      if (said === null) world.heard(id);
      else this.#apply('ended' in said, said, odd);
      etag = response.headers.get('etag') ?? etag;
      response = null;
      this.heard = true;
      // Nothing is to be heard now. A page that is not looked at may sleep for minutes here.
      clearTimeout(this.#silence);
      await pause(POLL_MS, this.#signal);
      this.#signal.throwIfAborted();
    }
  }

  /** Something was heard: the silence begins anew. */
  #markHeard(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#cut.abort(), SILENCE_MS);
  }
}

const WORDS: Readonly<Record<string, string>> = {
  unauthorized: 'it refuses the key',
  too_many_failures: 'it refuses the key, as it did several before',
  gateway_unreachable: 'the gateway cannot be reached',
  gateway_refused_key: 'the gateway refuses the key of this server',
};

function wordsOf(thrown: unknown): string {
  if (thrown instanceof AnswerError) return WORDS[thrown.code] ?? sentenceOf(thrown);
  if (thrown instanceof SyntaxError) return 'it says what this page does not understand';
  return sentenceOf(thrown);
}
