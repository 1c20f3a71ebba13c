import { type Signal, signal } from '@preact/signals';
import type { EndView, Totals } from '../protocol.ts';
import type { SeenDelta, SeenGateway, SeenSession, SeenSnapshot } from './reading.ts';
import type { Source } from './source.ts';

/** What is known of one source. Read it after `world.version` or `world.calm` has changed. */
export interface SourceView {
  readonly source: Source;
  readonly state: 'connecting' | 'live' | 'gone';
  /** Why nobody hears from it; '' while somebody does. */
  readonly why: string;
  /** When it was last heard, by this machine's clock. */
  readonly heardAt: number | null;
  /** What shows that it is of another version; null when nothing does. */
  readonly odd: string | null;
  readonly gateways: readonly SeenGateway[];
  readonly totals: Totals | null;
  readonly more: boolean;
}

interface SourceBook extends SourceView {
  state: SourceView['state'];
  why: string;
  heardAt: number | null;
  odd: string | null;
  gateways: readonly SeenGateway[];
  self: string | null;
  totals: Totals | null;
  more: boolean;
  seq: number;
  readonly sessions: Map<string, SeenSession>;
}

/** A session as it is shown: once, however many sources tell of it. A new object whenever something of it is new. */
export interface WorldSession {
  readonly view: SeenSession;
  /** The source it is shown from. */
  readonly source: Source;
  /** The gateway whose room it is in. */
  readonly room: string;
  /** False: what was last known, from a source that is gone. */
  readonly live: boolean;
}

export interface WorldEnd extends EndView {
  readonly source: Source;
  /** As it was last seen; null when it was never shown. */
  readonly view: SeenSession | null;
}

export interface WorldParts {
  /** Calls back when it is time to show what is new: at the next frame of the screen. */
  readonly frame: (show: () => void) => void;
  readonly now: () => number;
}

const ENDS_KEPT = 100;
/** Ends remembered so that a slow source does not bring back who has ended: an end is for good. */
const ENDED_KNOWN = 20_000;
const CALM_MS = 250;

/**
 * Everything that goes on, of all sources. Maps are changed in place, and a number says that they are: ten thousand
 * sessions are not copied because one of them thinks.
 */
export class World {
  /** Changes at most once in a frame. */
  readonly version: Signal<number> = signal(0);
  /** Changes at most four times a second: for what people read. */
  readonly calm: Signal<number> = signal(0);
  readonly sessions = new Map<string, WorldSession>();
  /** The newest first. */
  readonly ends: WorldEnd[] = [];
  readonly #parts: WorldParts;
  readonly #books = new Map<string, SourceBook>();
  readonly #ended = new Set<string>();
  readonly #farewells = new Set<(ends: readonly WorldEnd[]) => void>();
  #told: WorldEnd[] = [];
  #fresh = false;
  #scheduled = false;
  #calmedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: WorldParts) {
    this.#parts = parts;
  }

  get sources(): readonly SourceView[] {
    return [...this.#books.values()];
  }

  sourceOf(id: string): Source | null {
    return this.#books.get(id)?.source ?? null;
  }

  add(source: Source): void {
    if (this.#books.has(source.id)) return;
    this.#books.set(source.id, {
      source,
      ...{ state: 'connecting', why: '', heardAt: null, odd: null, gateways: [], self: null },
      ...{ totals: null, more: false, seq: 0, sessions: new Map() },
    });
    this.#changed();
  }

  /** Calls with the sessions that have ended, at most once in a frame; returns how to stop it. */
  onFarewell(listener: (ends: readonly WorldEnd[]) => void): () => void {
    this.#farewells.add(listener);
    return () => this.#farewells.delete(listener);
  }

  /** The source was heard, though it had nothing new to say. */
  heard(id: string): void {
    const book = this.#book(id);
    book.heardAt = this.#parts.now();
    if (book.state !== 'live') this.#goLive(book);
  }

  gone(id: string, why: string): void {
    const book = this.#book(id);
    if (book.state === 'gone' && book.why === why) return;
    book.state = 'gone';
    book.why = why;
    for (const session of book.sessions.keys()) this.#settle(session);
    this.#changed();
  }

  /** The newest number that was heard of a source: where its stream goes on. */
  seqOf(id: string): number {
    return this.#book(id).seq;
  }

  note(id: string, odd: string | null): void {
    this.#book(id).odd = odd;
    this.#changed();
  }

  /** Returns the sessions that were there before and are not any more, without a word about their end. */
  applySnapshot(id: string, snapshot: SeenSnapshot): SeenSession[] {
    const book = this.#book(id);
    const before = [...book.sessions.values()];
    book.sessions.clear();
    for (const view of snapshot.sessions) if (!this.#ended.has(view.id)) book.sessions.set(view.id, view);
    book.odd = snapshot.odd;
    book.totals = snapshot.totals;
    book.more = snapshot.more;
    book.seq = snapshot.seq;
    this.#setGateways(book, snapshot.gateways);
    this.heard(id);
    for (const view of before) this.#settle(view.id);
    for (const session of book.sessions.keys()) this.#settle(session);
    this.#changed();
    return before.filter((view) => !book.sessions.has(view.id));
  }

  applyDelta(id: string, delta: SeenDelta): void {
    const book = this.#book(id);
    for (const end of delta.ended) this.end(id, end);
    for (const session of delta.removed) book.sessions.delete(session);
    for (const view of delta.sessions) if (!this.#ended.has(view.id)) book.sessions.set(view.id, view);
    if (delta.totals !== null) book.totals = delta.totals;
    if (delta.more !== null) book.more = delta.more;
    if (delta.odd !== null) book.odd = delta.odd;
    book.seq = delta.seq;
    const moved = delta.gateways !== null && this.#setGateways(book, delta.gateways);
    this.heard(id);
    if (moved) for (const session of book.sessions.keys()) this.#settle(session);
    for (const session of delta.removed) this.#settle(session);
    for (const { id: session } of delta.sessions) this.#settle(session);
    this.#changed();
  }

  /**
   * A session has ended: for every source, also for those that have not heard of it yet. `last` is how it was seen last,
   * where it is not shown any more.
   */
  end(id: string, end: EndView, last: SeenSession | null = null): void {
    const { source } = this.#book(id);
    if (this.#ended.has(end.id)) return;
    const view = this.sessions.get(end.id)?.view ?? last;
    this.#remember(end.id);
    for (const book of this.#books.values()) book.sessions.delete(end.id);
    this.#settle(end.id);
    const told = { ...end, source, view };
    this.ends.unshift(told);
    this.ends.length = Math.min(this.ends.length, ENDS_KEPT);
    this.#told.push(told);
    this.#changed();
  }

  hasEnded(id: string): boolean {
    return this.#ended.has(id);
  }

  #goLive(book: SourceBook): void {
    book.state = 'live';
    book.why = '';
    for (const session of book.sessions.keys()) this.#settle(session);
    this.#changed();
  }

  /** Returns whether sessions may have to be shown from elsewhere, as the source is another gateway than before. */
  #setGateways(book: SourceBook, gateways: readonly SeenGateway[]): boolean {
    const self = gateways.find((one) => one.self)?.id ?? null;
    const moved = self !== book.self;
    book.gateways = gateways;
    book.self = self;
    return moved;
  }

  /** Shows a session from where it is known best, or not at all. */
  #settle(id: string): void {
    const before = this.sessions.get(id);
    const book = this.#bestFor(id, before?.source.id);
    const view = book?.sessions.get(id);
    if (book === undefined || view === undefined) {
      this.sessions.delete(id);
      return;
    }
    const live = book.state === 'live';
    const room = view.gateway ?? book.self ?? book.source.id;
    if (before?.view === view && before.source === book.source && before.live === live && before.room === room) return;
    this.sessions.set(id, { view, source: book.source, room, live });
  }

  /** The owner knows most; else it stays where it is shown, while that source lives; else anybody who lives. */
  #bestFor(id: string, shownFrom: string | undefined): SourceBook | undefined {
    let best: SourceBook | undefined;
    let bestRank = -1;
    for (const book of this.#books.values()) {
      const view = book.sessions.get(id);
      if (view === undefined) continue;
      const owns = book.self !== null && view.gateway === book.self;
      const rank = (book.state === 'live' ? 4 : 0) + (owns ? 2 : 0) + (book.source.id === shownFrom ? 1 : 0);
      if (rank > bestRank) [best, bestRank] = [book, rank];
    }
    return best;
  }

  #remember(id: string): void {
    this.#ended.add(id);
    if (this.#ended.size <= ENDED_KNOWN) return;
    for (const oldest of this.#ended) {
      this.#ended.delete(oldest);
      break;
    }
  }

  #book(id: string): SourceBook {
    const book = this.#books.get(id);
    if (book === undefined) throw new RangeError(`no source "${id}"`);
    return book;
  }

  #changed(): void {
    this.#fresh = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#parts.frame(() => this.#show());
  }

  #show(): void {
    this.#scheduled = false;
    if (this.#fresh) this.#tell();
    const now = this.#parts.now();
    if (now - this.#calmedAt < CALM_MS) {
      this.#schedule();
      return;
    }
    this.#calmedAt = now;
    this.calm.value++;
  }

  #tell(): void {
    this.#fresh = false;
    const told = this.#told;
    this.#told = [];
    if (told.length > 0) for (const listener of this.#farewells) listener(told);
    this.version.value++;
  }
}
