import type { PlatformRuntime } from '../platform.ts';

const WINDOW_MS = 3_600_000;
/** More answers to us than a person writes in an hour. */
const MOST_ANSWERS = 30;
/** More threads than a person begins in an hour. */
const MOST_THREADS = 60;
const MOST_REMEMBERED = 5000;

/**
 * Ends a talk with a program that answers mail and does not say so. It is told from a person by how often it writes: answers
 * to us in one thread, or threads that it begins. What counts is when a mail came, not when it is read: what waited for a
 * week was not written in one hour.
 */
export class ExchangeGuard {
  readonly #runtime: Pick<PlatformRuntime, 'warn'>;
  readonly #times = new Map<string, number[]>();
  readonly #warned = new Map<string, number>();

  constructor(runtime: Pick<PlatformRuntime, 'warn'>) {
    this.#runtime = runtime;
  }

  /** False for one mail too many. */
  admits(
    from: string,
    mail: { readonly root: string; readonly begins: boolean; readonly answersUs: boolean; readonly at: number },
  ): boolean {
    const { root, begins, answersUs, at } = mail;
    if (begins) return this.#count(`${from} begins`, MOST_THREADS, from, at);
    return !answersUs || this.#count(`${from} ${root}`, MOST_ANSWERS, from, at);
  }

  #count(key: string, most: number, from: string, at: number): boolean {
    const recent = (this.#times.get(key) ?? []).filter((before) => before > at - WINDOW_MS);
    if (this.#times.size >= MOST_REMEMBERED) this.#times.clear();
    const isTooMany = recent.length >= most;
    this.#times.set(key, isTooMany ? recent : [...recent, at]);
    if (isTooMany && (this.#warned.get(key) ?? Number.NEGATIVE_INFINITY) <= at - WINDOW_MS) {
      if (this.#warned.size >= MOST_REMEMBERED) this.#warned.clear();
      this.#warned.set(key, at);
      this.#runtime.warn('more mail from one address than a person writes: it is not answered for an hour', { from });
    }
    return !isTooMany;
  }
}
