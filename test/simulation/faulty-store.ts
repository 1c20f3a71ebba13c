import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { ResetRules } from '../../src/lifecycle/reset-policy.ts';
import type { ReadArgs, ReadName, ReadResult, WriteArgs, WriteName, WriteResult } from '../../src/store/catalogue.ts';
import type { Store } from '../../src/store/port.ts';
import type { Effects } from '../../src/store/transaction.ts';
import type { Random } from './random.ts';
import type { VirtualTime } from './virtual-time.ts';

/** How badly the line between a process and its store behaves; drawn per seed. */
export interface FaultMix {
  /** The request never arrives. */
  refused: number;
  /** The request is carried out, and the answer is lost. */
  lostReply: number;
  /** The answer is late. */
  slow: number;
}

/** A store in trouble, as one living process sees it for a while: everything it asks goes wrong in one way. */
export type Trouble = 'refuses' | 'loses answers' | 'is late';

/** What a store says that refuses a write: the disk is full, the server away, or a defect. */
const REFUSALS = ['store_unreachable', 'store_full', 'store_locked', 'store_io', 'internal'] as const;

/** Puts one process's real store behind a line that fails. A crashed process never hears back. */
export class FaultyStore implements Store {
  readonly engine: Store['engine'];
  readonly location = 'simulated';
  crashed = false;
  trouble: Trouble | null = null;
  readonly #inner: Store;
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #mix: FaultMix;
  readonly #applied: (name: WriteName, args: unknown, value: unknown) => void;
  /** Waits while the process is paused. */
  readonly #gate: () => Promise<void>;
  readonly #listeners = new Set<(effects: Effects) => void>();
  static #lock: Promise<unknown> = Promise.resolve();

  constructor(
    inner: Store,
    time: VirtualTime,
    random: Random,
    mix: FaultMix,
    gate: () => Promise<void>,
    applied: (name: WriteName, args: unknown, value: unknown) => void,
  ) {
    this.engine = inner.engine;
    this.#inner = inner;
    this.#time = time;
    this.#random = random;
    this.#mix = mix;
    this.#gate = gate;
    this.#applied = applied;
  }

  async write<N extends WriteName>(name: N, args: WriteArgs<N>): Promise<WriteResult<N>> {
    await this.#travel();
    this.#refuse();
    const value = await this.#alone(() => this.#inner.write(name, args));
    this.#applied(name, args, value);
    await this.#travel();
    if (this.trouble === 'loses answers' || this.#random.chance(this.#mix.lostReply)) {
      throw new MoiraiError('store_outcome_unknown', 'simulated: lost');
    }
    return value;
  }

  async read<N extends ReadName>(name: N, args: ReadArgs<N>): Promise<ReadResult<N>> {
    await this.#travel();
    this.#refuse();
    return this.#alone(() => this.#inner.read(name, args));
  }

  onCommit(listener: (effects: Effects) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  useRules(rules: ResetRules): void {
    this.#inner.useRules(rules);
  }

  async close(): Promise<void> {}

  /** Requests of all processes reach the store one after the other, in an order the seed decides. */
  #alone<T>(action: () => Promise<T>): Promise<T> {
    if (this.crashed) return new Promise(() => undefined);
    this.#time.busy++;
    const run = FaultyStore.#lock.then(async () => {
      // Only what this process commits is heard by it, as between real processes.
      const unlisten = this.#inner.onCommit((effects) => {
        for (const listener of this.#listeners) listener(effects);
      });
      try {
        return await action();
      } finally {
        unlisten();
        this.#time.busy--;
      }
    });
    FaultyStore.#lock = run.catch(() => undefined);
    return run;
  }

  #refuse(): void {
    if (this.trouble === 'refuses') throw new MoiraiError(this.#random.pick(REFUSALS), 'simulated: refused');
    if (this.#random.chance(this.#mix.refused)) throw new MoiraiError('store_unreachable', 'simulated: refused');
  }

  async #travel(): Promise<void> {
    if (this.trouble === 'is late') await this.#time.sleep(this.#random.between(200, 1500));
    if (this.#random.chance(this.#mix.slow)) {
      await this.#time.sleep(this.#random.chance(0.1) ? this.#random.between(500, 4000) : this.#random.between(1, 60));
    }
    await this.#gate();
    if (this.crashed) await new Promise(() => undefined);
  }
}
