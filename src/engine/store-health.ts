import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { isStoreTrouble } from '../queue/retry-until-known.ts';
import type { Timers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';

export interface StoreHealthOptions {
  readonly store: Store;
  /** Whose row is written to find out. */
  readonly instance: string;
  readonly timers: Timers;
  /** Called when writes begin to fail, and with null when they work again. */
  readonly changed: (problem: MoiraiError | null) => void;
}

/** A store that has not taken a write for so long takes none. */
const SLOW_MS = 1500;
/** For so long the last answer counts. */
const FRESH_MS = 500;
/** Between two tries while nothing can be written. */
const RETRY_MS = 300;

/**
 * Whether anything can be kept just now. `/ready` and the acceptance of new work ask the same one. It finds out by a
 * small write of its own: one write that failed may have failed for a reason of its own.
 */
export class StoreHealth {
  readonly #options: StoreHealthOptions;
  #problem: MoiraiError | null = null;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | null = null;
  #cancelRetry: () => void = () => undefined;
  #waiting: (() => void)[] = [];
  #stopped = false;

  constructor(options: StoreHealthOptions) {
    this.#options = options;
  }

  /** The same store; a write of it that fails makes this look at once. */
  watch(store: Store): Store {
    return {
      engine: store.engine,
      location: store.location,
      write: async (name, args) => {
        try {
          return await store.write(name, args);
        } catch (thrown) {
          const error = MoiraiError.wrap(thrown);
          if (isStoreTrouble(error) || hasCode(error, 'store_newer')) void this.#start();
          throw thrown;
        }
      },
      read: (name, args) => store.read(name, args),
      onCommit: (listener) => store.onCommit(listener),
      useRules: (rules) => store.useRules(rules),
      close: () => store.close(),
    };
  }

  /** Why nothing can be written, as far as is known; null when it can. */
  get problem(): MoiraiError | null {
    return this.#problem;
  }

  /** Throws what is wrong while nothing can be written: then nothing new is accepted. */
  assertWritable(): void {
    if (this.#problem !== null) throw this.#problem;
  }

  /** Looks, unless it did a moment ago, and says what is wrong. Takes no longer than a store may. */
  async check(): Promise<MoiraiError | null> {
    const fresh = this.#options.timers.elapsed() - this.#checkedAt < FRESH_MS;
    if (!fresh || this.#problem !== null) await this.#start();
    return this.#problem;
  }

  /** Resolves when something can be written; with false when nobody asks any more. */
  async writable(): Promise<boolean> {
    await this.#start();
    while (!this.#stopped && (await this.check()) !== null) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return !this.#stopped;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelRetry();
    this.#tellWaiting();
  }

  /** Resolves when it is known, or when it took too long, which is known then. */
  #start(): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    this.#checking ??= this.#look();
    return this.#checking;
  }

  #look(): Promise<void> {
    const { store, instance, timers } = this.#options;
    const began = timers.elapsed();
    this.#cancelRetry();
    return new Promise((known) => {
      // The write itself may go on for long: until it is answered no other one is tried.
      const cancelSlow = timers.after(SLOW_MS, () => {
        this.#become(slowError(store), began);
        known();
      });
      void store
        .write('probe', { instance })
        .then(
          () => null,
          (thrown: unknown) => MoiraiError.wrap(thrown),
        )
        .then((problem) => {
          cancelSlow();
          this.#checking = null;
          this.#become(problem, began);
          if (problem !== null && !this.#stopped) {
            this.#cancelRetry = timers.after(RETRY_MS, () => void this.#start());
          }
          known();
        });
    });
  }

  #become(problem: MoiraiError | null, checkedAt: number): void {
    const turned = (problem === null) !== (this.#problem === null);
    this.#problem = problem;
    this.#checkedAt = checkedAt;
    if (turned) this.#options.changed(problem);
    if (problem === null) this.#tellWaiting();
  }

  #tellWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

function slowError({ engine, location }: Store): MoiraiError {
  const code = engine === 'sqlite' ? 'store_locked' : 'store_unreachable';
  return new MoiraiError(code, `${location} has not taken a write for ${SLOW_MS} ms`);
}
