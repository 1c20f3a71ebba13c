import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import type { WriteName } from '../../src/store/catalogue.ts';
import type { Random } from './random.ts';

/** What the simulation saw happen, independent of what the store says, and what was wrong with it. */
export class History {
  readonly violations: string[] = [];
  readonly deliveries = new Map<string, Map<string, number>>();
  readonly acknowledgedRefs = new Set<string>();
  /** Replies by their ids: when each came first, how often, and how often without the mark of a possible repetition. */
  readonly arrivals = new Map<string, { readonly at: number; times: number; unmarked: number }>();
  #arrived = 0;
  writes = 0;
  readonly #sessions: string[] = [];
  readonly #known = new Set<string>();
  readonly #epochs = new Map<string, { epoch: number; owner: string | null }>();
  readonly #leases = new Map<string, number>();
  readonly #leaseNow: () => number;
  readonly #refs: string[] = [];
  #delivered = 0;

  constructor(leaseNow: () => number) {
    this.#leaseNow = leaseNow;
  }

  violation(what: string): void {
    if (this.violations.length < 20) this.violations.push(what);
  }

  /** Called for every write the store carried out, also when nobody heard the answer. */
  applied(name: WriteName, args: unknown, value: unknown): void {
    this.writes++;
    this.#checkLease(name, args);
    for (const session of sessionsIn(value)) this.#checkEpoch(session);
  }

  delivered(subscriber: string, event: MoiraiEvent): void {
    const seen = this.deliveries.get(subscriber) ?? new Map<string, number>();
    this.deliveries.set(subscriber, seen);
    if (!seen.has(event.id)) seen.set(event.id, this.#delivered++);
  }

  /** A reply arrived at its platform. */
  sent(text: string): void {
    const [id = '', mark] = text.split('\n');
    const known = this.arrivals.get(id);
    const unmarked = mark === undefined ? 1 : 0;
    if (known === undefined) this.arrivals.set(id, { at: this.#arrived++, times: 1, unmarked });
    else {
      known.times++;
      known.unmarked += unmarked;
    }
  }

  acknowledged(ref: string): void {
    this.acknowledgedRefs.add(ref);
  }

  /** Mostly a new message; sometimes one that was sent before. */
  messageRef(random: Random): string {
    if (this.#refs.length > 0 && random.chance(0.1)) return random.pick(this.#refs);
    const ref = `telegram:${this.#refs.length + 1}`;
    this.#refs.push(ref);
    return ref;
  }

  anySession(random: Random): string | null {
    return this.#sessions.length === 0 ? null : random.pick(this.#sessions.slice(-20));
  }

  /** No commit without a live lease: recomputed here from the beats that were carried out. */
  #checkLease(name: WriteName, args: unknown): void {
    const now = this.#leaseNow();
    const given = args as {
      facts?: { id: string };
      ttlMs?: number;
      instance?: string;
      context?: { instanceId: string };
    };
    if (name === 'bootInstance') this.#leases.set(given.facts?.id ?? '', now + (given.ttlMs ?? 0));
    const instance = given.context?.instanceId ?? (name === 'beat' ? given.instance : undefined);
    if (instance === undefined) return;
    const until = this.#leases.get(instance) ?? 0;
    if (until <= now) this.violation(`${name} was carried out for ${instance} without a live lease`);
    if (name === 'beat') this.#leases.set(instance, now + (given.ttlMs ?? 0));
  }

  /** An epoch never falls and has one owner. */
  #checkEpoch(session: Session): void {
    if (!this.#known.has(session.id)) {
      this.#known.add(session.id);
      if (session.kind === 'chat') this.#sessions.push(session.id);
    }
    const before = this.#epochs.get(session.id);
    if (before !== undefined) {
      if (session.epoch < before.epoch) this.violation(`epoch of ${session.id} fell from ${before.epoch}`);
      const changedHands = before.owner !== null && session.owner !== null && before.owner !== session.owner;
      if (session.epoch === before.epoch && changedHands) this.violation(`${session.id} has two owners in one epoch`);
    }
    const owner = session.owner ?? (before?.epoch === session.epoch ? before.owner : null);
    this.#epochs.set(session.id, { epoch: session.epoch, owner });
  }
}

function sessionsIn(value: unknown): Session[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('session' in value) return [value.session as Session];
  if ('epoch' in value && 'key' in value) return [value as Session];
  return [];
}
