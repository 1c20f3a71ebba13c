import { type PlatformRuntime, SendFailure } from '../platform.ts';

/** Meta lets so many messages to one person through at once, and then one in so many milliseconds. */
const BURST = 40;
const EVERY_MS = 6000;
/** Who was not written to for so long has all of it again. */
const FULL_MS = BURST * EVERY_MS;
/** Each refusal makes the next wait four times as long, as Meta asks. */
const LONGEST_MS = 300_000;

interface Pair {
  /** What is spent of the burst would be back then. */
  fullAt: number;
  refusals: number;
}

/** How fast one person may be written to: who is slower by himself is not refused. */
export class PairPace {
  readonly #runtime: Pick<PlatformRuntime, 'now'>;
  readonly #pairs = new Map<string, Pair>();

  constructor(runtime: Pick<PlatformRuntime, 'now'>) {
    this.#runtime = runtime;
  }

  /** Counts a message to the person; throws `SendFailure` when it has to wait. */
  take(person: string): void {
    const now = this.#runtime.now();
    const pair = this.#pairOf(person, now);
    const spent = Math.max(pair.fullAt, now) + EVERY_MS;
    const wait = spent - (now + FULL_MS);
    if (wait > 0) throw new SendFailure('this person was written to too often in a short time', wait, 'rate_limited');
    pair.fullAt = spent;
  }

  /** Meta refused because of the pair: how long to wait. */
  refused(person: string): number {
    const now = this.#runtime.now();
    const pair = this.#pairOf(person, now);
    // What was counted was too little: somebody else writes from this number, or a process before this one did.
    pair.fullAt = now + FULL_MS;
    const wait = Math.min(EVERY_MS * 4 ** pair.refusals, LONGEST_MS);
    pair.refusals += 1;
    return wait;
  }

  taken(person: string): void {
    const pair = this.#pairs.get(person);
    if (pair !== undefined) pair.refusals = 0;
  }

  #pairOf(person: string, now: number): Pair {
    const known = this.#pairs.get(person);
    if (known !== undefined) return known;
    for (const [other, { fullAt }] of this.#pairs) if (fullAt <= now) this.#pairs.delete(other);
    const pair = { fullAt: now, refusals: 0 };
    this.#pairs.set(person, pair);
    return pair;
  }
}
