import { type Signal, signal } from '@preact/signals';
import type { Delta, EndView, GatewayView, SessionView, Snapshot, Totals } from '../protocol.ts';
import type { Source } from './source.ts';

/** What is known of one source. Read it after `world.version` or `world.calm` has changed. */
export interface SourceView {
  readonly source: Source;
  readonly state: 'connecting' | 'live' | 'gone';
  /** Why it is not heard; '' while it is. */
  readonly why: string;
  /** When it was last heard, by this machine's clock. */
  readonly heardAt: number | null;
  /** What shows that it is of another version; null when nothing does. */
  readonly odd: string | null;
  readonly gateways: readonly GatewayView[];
  readonly totals: Totals | null;
}

type SourceRecord = { -readonly [Field in keyof SourceView]: SourceView[Field] } & {
  self: string | null;
  seq: number;
  readonly sessions: Map<string, SessionView>;
};

/** A session as it is shown: once, however many sources tell of it. A new object whenever something of it is new. */
export interface WorldSession {
  readonly view: SessionView;
  /** The source it is shown from. */
  readonly source: Source;
  /** The gateway whose room it is in. */
  readonly room: string;
  /** False: what was last known, from a source that is gone. */
  readonly live: boolean;
}

export interface WorldEnd extends EndView {
  /** As it was last seen; null when it was never shown. */
  readonly view: SessionView | null;
}

export interface WorldParts {
  /** Calls back when it is time to show what is new: at the next frame of the screen. */
  readonly frame: (show: () => void) => void;
  readonly now: () => number;
}

const ENDS_KEPT = 100;
/** Ends remembered so that a slow source does not bring back an ended session: an end is final. */
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
  readonly #records = new Map<string, SourceRecord>();
  readonly #ended = new Set<string>();
  readonly #farewells = new Set<(ends: readonly WorldEnd[]) => void>();
  #unreportedEnds: WorldEnd[] = [];
  #fresh = false;
  #scheduled = false;
  #calmedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: WorldParts) {
    this.#parts = parts;
  }

  get sources(): readonly SourceView[] {
    return [...this.#records.values()];
  }

  sourceOf(id: string): Source | null {
    return this.#records.get(id)?.source ?? null;
  }

  add(source: Source): void {
    if (this.#records.has(source.id)) return;
    this.#records.set(source.id, {
      source,
      state: 'connecting',
      why: '',
      heardAt: null,
      odd: null,
      gateways: [],
      self: null,
      totals: null,
      seq: 0,
      sessions: new Map(),
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
    const record = this.#record(id);
    record.heardAt = this.#parts.now();
    this.#setState(record, 'live', '');
  }

  gone(id: string, why: string): void {
    this.#setState(this.#record(id), 'gone', why);
  }

  /** The newest number that was heard of a source: where its stream goes on. */
  seqOf(id: string): number {
    return this.#record(id).seq;
  }

  /** Returns the sessions that were there before and are not any more, without a word about their end. */
  applySnapshot(id: string, snapshot: Snapshot): SessionView[] {
    const record = this.#record(id);
    const before = [...record.sessions.values()];
    record.sessions.clear();
    for (const view of snapshot.sessions) if (!this.#ended.has(view.id)) record.sessions.set(view.id, view);
    record.odd = snapshot.odd;
    record.totals = snapshot.totals;
    record.seq = snapshot.seq;
    this.#setGateways(record, snapshot.gateways);
    this.heard(id);
    for (const view of before) this.#settle(view.id);
    for (const session of record.sessions.keys()) this.#settle(session);
    this.#changed();
    return before.filter((view) => !record.sessions.has(view.id));
  }

  applyDelta(id: string, delta: Delta): void {
    const record = this.#record(id);
    for (const end of delta.ended) this.end(end);
    for (const session of delta.removed) record.sessions.delete(session);
    for (const view of delta.sessions) if (!this.#ended.has(view.id)) record.sessions.set(view.id, view);
    if (delta.totals !== null) record.totals = delta.totals;
    if (delta.odd !== null) record.odd = delta.odd;
    record.seq = delta.seq;
    const moved = delta.gateways !== null && this.#setGateways(record, delta.gateways);
    this.heard(id);
    if (moved) for (const session of record.sessions.keys()) this.#settle(session);
    for (const session of delta.removed) this.#settle(session);
    for (const { id: session } of delta.sessions) this.#settle(session);
    this.#changed();
  }

  /**
   * A session has ended: for every source, also for those that have not heard of it yet. `last` is how it was seen last,
   * where it is not shown any more.
   */
  end(end: EndView, last: SessionView | null = null): void {
    if (this.#ended.has(end.id)) return;
    const view = this.sessions.get(end.id)?.view ?? last;
    this.#remember(end.id);
    for (const record of this.#records.values()) record.sessions.delete(end.id);
    this.#settle(end.id);
    const ended = { ...end, view };
    this.ends.unshift(ended);
    this.ends.length = Math.min(this.ends.length, ENDS_KEPT);
    this.#unreportedEnds.push(ended);
    this.#changed();
  }

  hasEnded(id: string): boolean {
    return this.#ended.has(id);
  }

  #setState(record: SourceRecord, state: SourceView['state'], why: string): void {
    if (record.state === state && record.why === why) return;
    record.state = state;
    record.why = why;
    for (const session of record.sessions.keys()) this.#settle(session);
    this.#changed();
  }

  /** Returns whether sessions may have to be shown from elsewhere, as the source is another gateway than before. */
  #setGateways(record: SourceRecord, gateways: readonly GatewayView[]): boolean {
    const self = gateways.find((one) => one.self)?.id ?? null;
    const moved = self !== record.self;
    record.gateways = gateways;
    record.self = self;
    return moved;
  }

  /** Shows a session from where it is known best, or not at all. */
  #settle(id: string): void {
    const before = this.sessions.get(id);
    const record = this.#bestFor(id, before?.source.id);
    const view = record?.sessions.get(id);
    if (record === undefined || view === undefined) {
      this.sessions.delete(id);
      return;
    }
    const live = record.state === 'live';
    const room = view.gateway ?? record.self ?? record.source.id;
    if (before?.view === view && before.source === record.source && before.live === live && before.room === room)
      return;
    this.sessions.set(id, { view, source: record.source, room, live });
  }

  /** The owner knows most; else it stays where it is shown, while that source lives; else anybody who lives. */
  #bestFor(id: string, shownFrom: string | undefined): SourceRecord | undefined {
    let best: SourceRecord | undefined;
    let bestRank = -1;
    for (const record of this.#records.values()) {
      const view = record.sessions.get(id);
      if (view === undefined) continue;
      const owns = record.self !== null && view.gateway === record.self;
      const rank = (record.state === 'live' ? 4 : 0) + (owns ? 2 : 0) + (record.source.id === shownFrom ? 1 : 0);
      if (rank > bestRank) [best, bestRank] = [record, rank];
    }
    return best;
  }

  #remember(id: string): void {
    this.#ended.add(id);
    const [oldest = id] = this.#ended;
    if (this.#ended.size > ENDED_KNOWN) this.#ended.delete(oldest);
  }

  #record(id: string): SourceRecord {
    const record = this.#records.get(id);
    if (record === undefined) throw new RangeError(`no source "${id}"`);
    return record;
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
    const ended = this.#unreportedEnds;
    this.#unreportedEnds = [];
    if (ended.length > 0) for (const listener of this.#farewells) listener(ended);
    this.version.value++;
  }
}
