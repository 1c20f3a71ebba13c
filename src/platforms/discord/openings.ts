import { integerOf, listOf, textOf } from '../fields.ts';
import { type PlatformRuntime, SendFailure } from '../platform.ts';

const KEPT = 'openings';
const MOST_KEPT = 50;
/** How much Discord's clock may be behind ours. */
const CLOCKS_MS = 60_000;

/**
 * The posts that were tried to be opened last, by the keys of their first messages. Kept before Discord is asked: whoever
 * tries again, in this process or the next, looks for the post first.
 */
export class Openings {
  readonly #runtime: PlatformRuntime;
  #read: Promise<Map<string, number>> | null = null;
  #keeping: Promise<void> = Promise.resolve();

  constructor(runtime: PlatformRuntime) {
    this.#runtime = runtime;
  }

  /** Since when the post may be there; null where nobody has tried yet, and it is kept that somebody does. Throws `SendFailure`. */
  async begin(key: string): Promise<number | null> {
    try {
      const known = await this.#known();
      const since = known.get(key);
      if (since !== undefined) return since;
      known.set(key, this.#runtime.now() - CLOCKS_MS);
      for (const oldest of known.keys()) {
        if (known.size <= MOST_KEPT) break;
        known.delete(oldest);
      }
      await this.#keep(known);
      return null;
    } catch (thrown) {
      this.#read = null;
      this.#runtime.warn('that a post is opened cannot be kept', { error: String(thrown) });
      throw new SendFailure('that the post is opened cannot be kept now', 1000, 'transient');
    }
  }

  #known(): Promise<Map<string, number>> {
    this.#read ??= this.#runtime.recall(KEPT).then(parseKept);
    return this.#read;
  }

  /** One after the other: an older list never takes the place of a newer one. */
  async #keep(known: ReadonlyMap<string, number>): Promise<void> {
    const keeping = this.#keeping
      .catch(() => undefined)
      .then(() => this.#runtime.keep(KEPT, JSON.stringify([...known])));
    this.#keeping = keeping;
    await keeping;
  }
}

function parseKept(text: string | null): Map<string, number> {
  const pairs = listOf(parsed(text)).flatMap((each): [string, number][] => {
    const [key, since] = listOf(each);
    const [name, ms] = [textOf(key), integerOf(since)];
    return name === null || ms === null ? [] : [[name, ms]];
  });
  return new Map(pairs);
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return null;
  }
}
