import { listOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import { Recent } from '../recent.ts';

const REMEMBERED = 50;

interface KeptEntriesOptions<V> {
  readonly runtime: PlatformRuntime;
  readonly key: string;
  /** Null for what is no such entry. */
  readonly read: (kept: unknown) => V | null;
}

/** The entries that were used last, kept as one text, so that the next process knows them. */
export class KeptEntries<V> {
  readonly #options: KeptEntriesOptions<V>;
  readonly #entries = new Recent<V>(REMEMBERED);
  #reading: Promise<void> | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KeptEntriesOptions<V>) {
    this.#options = options;
  }

  async get(name: string): Promise<V | null> {
    this.#reading ??= this.#read();
    await this.#reading;
    return this.#entries.get(name) ?? null;
  }

  /** Resolves when it is durable; this process knows it at once. */
  async set(name: string, value: V): Promise<void> {
    await this.get(name);
    this.#entries.set(name, value);
    const { runtime, key } = this.#options;
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(() => runtime.keep(key, JSON.stringify(this.#entries.entries())));
    await this.#writing;
  }

  async #read(): Promise<void> {
    const { runtime, key, read } = this.#options;
    try {
      const kept: unknown = JSON.parse((await runtime.recall(key)) ?? '[]');
      for (const each of listOf(kept)) {
        const [name, value] = listOf(each);
        const entry = read(value);
        if (typeof name === 'string' && entry !== null) this.#entries.set(name, entry);
      }
    } catch (thrown) {
      runtime.warn('what a process before this one kept cannot be read', { key, error: String(thrown) });
    }
  }
}
