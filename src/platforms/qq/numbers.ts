import { createHash } from 'node:crypto';
import { integerOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import { Recent } from '../recent.ts';
import { KeptEntries } from './kept-entries.ts';

/** QQ takes five answers to a message at most, in some places fewer; it says so itself where it is fewer. */
const MOST_ANSWERS = 5;
const REMEMBERED = 2000;

/**
 * The number of each answer to a message. QQ refuses the same number twice for one message, so it follows from what names
 * the answer: a repetition carries the same pair, also in another process, and its refusal means that it has arrived.
 */
export class Numbers {
  readonly #runtime: PlatformRuntime;
  /** How often an answer was refused: a number that was refused may count as used. */
  readonly #refusals: KeptEntries<number>;
  /** The numbers that a message was answered with. */
  readonly #used = new Recent<Set<number>>(REMEMBERED);

  constructor(runtime: PlatformRuntime) {
    this.#runtime = runtime;
    this.#refusals = new KeptEntries({ runtime, key: 'refused', read: integerOf });
  }

  async numberOf(key: string): Promise<number> {
    const attempt = (await this.#refusals.get(key)) ?? 0;
    const digest = createHash('sha256')
      .update(attempt === 0 ? key : `${key} ${attempt}`)
      .digest();
    return (digest.readUInt32BE() >>> 1) + 1;
  }

  /** The server has said why it does not take it: the next attempt is another one to it, in the next process too. */
  async refused(key: string): Promise<void> {
    const attempt = (await this.#refusals.get(key)) ?? 0;
    await this.#refusals.set(key, attempt + 1).catch((thrown: unknown) => {
      this.#runtime.warn('the next process will not know that an answer was refused', { error: String(thrown) });
    });
  }

  /** It was taken, or may have been. */
  used(messageId: string, number: number): void {
    const numbers = this.#used.get(messageId) ?? new Set();
    this.#used.set(messageId, numbers.add(number));
  }

  /** Whether one more answer with this number is one too many. */
  isUsedUp(messageId: string, number: number): boolean {
    const numbers = this.#used.get(messageId);
    return numbers !== undefined && !numbers.has(number) && numbers.size >= MOST_ANSWERS;
  }
}
