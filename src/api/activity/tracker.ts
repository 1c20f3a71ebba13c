import { randomUUID } from 'node:crypto';
import { isWithin, type Within } from '../../lifecycle/namespace.ts';
import type { Session } from '../../lifecycle/session.ts';
import type { Ended, Pulse, UnderWay } from '../../store/transactions/activity.ts';
import type { Instance } from '../../store/transactions/liveness.ts';
import type { ApiParts } from '../api.ts';
import { ActivitySnapshot } from './snapshot.ts';
import { activityView, endView, type GatewayView, gatewayView, isAlive, withoutHost } from './views.ts';

/** The most sessions that are shown: those active last. */
const MOST_SESSIONS = 20_000;
/** Gateways lost longer ago than this are history. */
const LOST_SHOWN_MS = 3_600_000;
/** When more has happened since the last look, everything is read anew. */
const MOST_EVENTS = 2000;
/** How many ends are remembered for those who come back after a cut connection. */
const MOST_ENDS = 5000;
/** How often what is shown is compared with the store, when it is quiet. */
const CHECK_MS = 15_000;

interface Changed {
  /** The change of the board that made it what it is, and the number of the log by then. */
  readonly change: number;
  readonly seq: number;
  readonly end?: Ended | null;
}

interface Card extends Changed {
  session: Session;
  /** What is shown, as it goes over the wire. */
  text: string;
}

interface Gone extends Changed {
  readonly id: string;
  readonly key: string | null;
  /** Null when the log tells of no end: it was deleted, or too much had happened to read it all. */
  readonly end: Ended | null;
}

export interface Snapshot {
  /** JSON, in pieces that are kept from one snapshot to the next where nothing has changed. */
  readonly parts: readonly Buffer[];
  readonly etag: string;
}

/**
 * What goes on, for visualizers: all open sessions, kept up to date by what the log says was touched and by the turns
 * under way. It is a cache of the store and no truth of its own: each look begins with the store, so that each request
 * sees what had happened when it came, its own writes included; and costs what has happened since the last look, not what
 * there is. One look at a time; all requests that come while one is under way share the next.
 */
export class ActivityTracker {
  readonly #parts: ApiParts;
  readonly #name = randomUUID().slice(0, 8);
  #cards = new Map<string, Card>();
  #sessionTexts = new ActivitySnapshot();
  #gone: Gone[] = [];
  #turns: UnderWay = {};
  #alive: ReadonlySet<string> = new Set();
  #gateways = '[]';
  #totals = '{"open":0,"unowned":0}';
  #more = false;
  #open = 0;
  #seq = 0;
  /** From which number of the log on the board knows all that has changed; null before the first look. */
  #knownFrom: number | null = null;
  /** Counts the looks that found a change. */
  #change = 0;
  #gatewaysChange = 0;
  #checkedAt = 0;
  #snapshot: Snapshot | null = null;
  #current: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | null = null;

  constructor(parts: ApiParts) {
    this.#parts = parts;
  }

  /** How often it has changed. */
  get change(): number {
    return this.#change;
  }

  get seq(): number {
    return this.#seq;
  }

  /** Brings it up to date with all that had happened when this was called. */
  look(): Promise<void> {
    this.#next ??= this.#lookAfter(this.#current);
    return this.#next;
  }

  /** Everything, and a tag that is the same for as long as nothing changes. */
  snapshot(within: Within): Snapshot {
    if (within !== null) return this.#snapshotWithin(within);
    const etag = `"${this.#name}.${this.#change}.${this.#seq}"`;
    if (this.#snapshot?.etag === etag) return this.#snapshot;
    const head = `{"seq":${this.#seq},"gateways":${this.#gateways},"totals":${this.#totals},"more":${this.#more},"sessions":[`;
    this.#snapshot = { parts: [Buffer.from(head), ...this.#sessionTexts.render(), Buffer.from(']}')], etag };
    return this.#snapshot;
  }

  /** What has changed since a change, as text. */
  deltaSince(change: number, within: Within): string {
    return this.#delta((one) => one.change > change, this.#gatewaysChange > change, within);
  }

  /** What may have changed since a number of the log; null when the board does not know that far back. */
  deltaSinceSeq(seq: number, within: Within): string | null {
    if (this.#knownFrom === null || seq < this.#knownFrom || seq > this.#seq) return null;
    // Some changes have no event: they carry the number of the last one before them. An end has an event: a snapshot
    // of that number leaves the session out already, and a client that has it must not get an old end as a new one.
    return this.#delta(({ end, seq: at }) => (end ? end.seq > seq : at >= seq), true, within);
  }

  /** What one API key sees: its own conversations, and of the gateways only that they are there. */
  #snapshotWithin(within: readonly string[]): Snapshot {
    const { gateways, totals, texts } = this.#seenWithin(within, () => true);
    const body = `{"seq":${this.#seq},"gateways":${gateways},"totals":${totals},"more":false,"sessions":[${texts.join(',')}]}`;
    return { parts: [Buffer.from(body)], etag: `"${this.#name}.${this.#change}.${this.#seq}.${within.join()}"` };
  }

  #seenWithin(within: Within, isNew: (one: Changed) => boolean) {
    const cards = [...this.#cards.values()].filter(({ session }) => isWithin(session.key, within));
    const texts = cards.filter(isNew).map(({ text }) => text);
    if (within === null) return { gateways: this.#gateways, totals: this.#totals, more: this.#more, texts };
    const gateways = JSON.stringify((JSON.parse(this.#gateways) as GatewayView[]).map(withoutHost));
    const unowned = cards.filter((card) => this.#isUnowned(card)).length;
    return { gateways, totals: JSON.stringify({ open: cards.length, unowned }), more: false, texts };
  }

  #delta(isNew: (one: Changed) => boolean, withGateways: boolean, within: Within): string {
    const { gateways, totals, more, texts } = this.#seenWithin(within, isNew);
    const gone = this.#gone.filter((one) => isNew(one) && isWithin(one.key, within));
    const ended = gone.flatMap(({ end }) => (end === null ? [] : [endView(end)]));
    const removed = gone.filter(({ end }) => end === null).map(({ id }) => id);
    return (
      `{"seq":${this.#seq},"gateways":${withGateways ? gateways : null},"totals":${totals},` +
      `"more":${more},"ended":${JSON.stringify(ended)},"removed":${JSON.stringify(removed)},` +
      `"sessions":[${texts.join(',')}]}`
    );
  }

  async #lookAfter(before: Promise<unknown>): Promise<void> {
    await before.catch(() => undefined); // The caller of that look gets its error.
    const looking = this.#update();
    this.#current = looking;
    this.#next = null;
    return looking;
  }

  async #update(): Promise<void> {
    const { engine, backend } = this.#parts;
    const check = performance.now() - this.#checkedAt > CHECK_MS;
    if (this.#knownFrom === null) await this.#readAll();
    const pulse = await engine.store.read('pulse', { after: this.#seq, limit: MOST_EVENTS, check });
    const state = backend.state();
    const ids = this.#toRead(pulse);
    if (ids === null) return this.#startOver(pulse, state);
    const sessions = ids.length === 0 ? [] : await engine.store.read('sessionsById', { ids });
    this.#apply(pulse, { ids, sessions }, state);
    if (pulse.open === null || ids.length > 0) return;
    this.#checkedAt = performance.now();
    if (!this.#agrees(pulse.open)) await this.#startOver({ ...pulse, ended: [] }, state);
  }

  /** The sessions that may have changed; null when that is not known. */
  #toRead({ touched, turns }: Pulse): string[] | null {
    if (touched === null) return null;
    const ids = new Set(touched);
    for (const id of new Set([...Object.keys(this.#turns), ...Object.keys(turns)])) {
      if (JSON.stringify(this.#turns[id]) !== JSON.stringify(turns[id])) ids.add(id);
    }
    return [...ids];
  }

  /** Every change of a session raises its version: equal sums mean that nothing was missed. */
  #agrees({ open, versions }: { open: number; versions: number }): boolean {
    if (this.#more) return true;
    let sum = 0;
    for (const { session } of this.#cards.values()) sum += session.version;
    return open === this.#cards.size && versions === sum;
  }

  /** The first look: no client has seen anything yet, so nothing is a change. */
  async #readAll(): Promise<void> {
    const { seq, sessions, turns, open } = await this.#parts.engine.store.read('activity', { limit: MOST_SESSIONS });
    this.#seq = seq;
    this.#knownFrom = seq;
    this.#turns = turns;
    this.#open = open;
    this.#more = open > sessions.length;
    for (const session of sessions) this.#cards.set(session.id, { session, text: '', change: 0, seq });
  }

  /** Reads everything anew, and finds out what is different. */
  async #startOver(pulse: Pulse, state: string): Promise<void> {
    const { seq, sessions, turns, open } = await this.#parts.engine.store.read('activity', { limit: MOST_SESSIONS });
    const ids = [...new Set([...this.#cards.keys(), ...sessions.map(({ id }) => id)])];
    this.#open = open;
    this.#more = open > sessions.length;
    // What the pulse has not told of comes with the next one, ends with their reasons among it.
    this.#apply({ ...pulse, turns, seq: pulse.touched === null ? seq : pulse.seq }, { ids, sessions }, state);
  }

  #apply(pulse: Pulse, read: { ids: readonly string[]; sessions: readonly Session[] }, state: string): void {
    const change = this.#change + 1;
    const alive = new Set(pulse.instances.filter(isAlive).map(({ id }) => id));
    const all = alive.size !== this.#alive.size || !alive.isSubsetOf(this.#alive);
    const running = [...runningIn(this.#turns), ...runningIn(pulse.turns)];
    this.#seq = Math.max(this.#seq, pulse.seq);
    this.#turns = pulse.turns;
    this.#alive = alive;
    const open = new Map(read.sessions.filter((one) => one.state !== 'ended').map((one) => [one.id, one]));
    const ends = new Map(pulse.ended.map((end) => [end.id, end]));
    let changed = false;
    for (const id of new Set([...read.ids, ...ends.keys()])) {
      const session = open.get(id);
      if (session === undefined) changed = this.#remove(id, ends.get(id) ?? null, change) || changed;
      else this.#place(session);
    }
    const drawn = all || this.#change === 0 ? this.#cards.keys() : new Set([...open.keys(), ...running]);
    for (const id of drawn) changed = this.#draw(id, change) || changed;
    changed = this.#drawGateways(pulse.instances, state, change) || changed;
    if (changed || all) changed = this.#count() || changed;
    if (changed) this.#change = change;
  }

  #place(session: Session): void {
    const card = this.#cards.get(session.id);
    if (card === undefined) this.#cards.set(session.id, { session, text: '', change: 0, seq: 0 });
    else card.session = session;
  }

  /** True when clients that follow have to be told. */
  #remove(id: string, end: Ended | null, change: number): boolean {
    const key = this.#cards.get(id)?.session.key ?? end?.key ?? null;
    const known = this.#cards.delete(id);
    this.#sessionTexts.remove(id);
    // One that began and ended between two looks was never seen, but its end is worth telling.
    if (!known && end === null) return false;
    this.#gone.push({ id, key, end, change, seq: this.#seq });
    if (this.#gone.length > MOST_ENDS) {
      const forgotten = this.#gone.splice(0, this.#gone.length - MOST_ENDS);
      this.#knownFrom = Math.max(this.#knownFrom ?? 0, (forgotten.at(-1)?.seq ?? 0) + 1);
    }
    return true;
  }

  #draw(id: string, change: number): boolean {
    const card = this.#cards.get(id);
    if (card === undefined) return false;
    const { engine, backend } = this.#parts;
    const { owner } = card.session;
    const turns = this.#turns[id];
    const doing = owner === engine.instance && turns !== undefined ? (backend.turnActivity?.(id) ?? null) : null;
    const text = JSON.stringify(activityView(card.session, turns, owner !== null && this.#alive.has(owner), doing));
    if (text === card.text) return false;
    Object.assign(card, { text, change, seq: this.#seq });
    this.#sessionTexts.put(id, text);
    return true;
  }

  #drawGateways(instances: readonly Instance[], state: string, change: number): boolean {
    const now = Date.now();
    const shown = instances.filter((one) => isAlive(one) || now - (one.lostAt ?? one.heartbeatAt) < LOST_SHOWN_MS);
    const here = this.#parts.engine.instance;
    const text = JSON.stringify(shown.map((one) => gatewayView(one, one.id === here, state)));
    if (text === this.#gateways) return false;
    this.#gateways = text;
    this.#gatewaysChange = change;
    return true;
  }

  #isUnowned({ session: { attached, owner } }: Card): boolean {
    return (attached || owner !== null) && (owner === null || !this.#alive.has(owner));
  }

  #count(): boolean {
    let unowned = 0;
    for (const card of this.#cards.values()) if (this.#isUnowned(card)) unowned += 1;
    const text = JSON.stringify({ open: this.#more ? this.#open : this.#cards.size, unowned });
    if (text === this.#totals) return false;
    this.#totals = text;
    return true;
  }
}

function runningIn(turns: UnderWay): string[] {
  return Object.keys(turns).filter((id) => turns[id]?.runningSince !== null);
}
