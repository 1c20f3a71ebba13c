import type { PlatformRuntime } from './platform.ts';

const EVERY_MS = 1000;

/**
 * Keeps the newest position under a key, at most once in a while: what comes again after a crash because the kept one is
 * a little old is known by its id. Give it only positions below which the inbox has everything.
 */
export class KeptCursor {
  readonly #runtime: PlatformRuntime;
  readonly #key: string;
  #wanted: string | null = null;
  #kept: string | null = null;
  #cancel: (() => void) | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(runtime: PlatformRuntime, key: string) {
    this.#runtime = runtime;
    this.#key = key;
  }

  /** As the last process left it, or as it was moved since; null for none. */
  async read(): Promise<string | null> {
    if (this.#wanted !== null) return this.#wanted;
    this.#kept = await this.#runtime.recall(this.#key);
    return this.#kept;
  }

  moveTo(position: string): void {
    this.#wanted = position;
    this.#cancel ??= this.#runtime.after(EVERY_MS, () => {
      this.#cancel = null;
      this.#writing = this.#writing.then(() => this.#write());
    });
  }

  /** Writes what is not written yet. */
  async flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = null;
    this.#writing = this.#writing.then(() => this.#write());
    await this.#writing;
  }

  async #write(): Promise<void> {
    const position = this.#wanted;
    if (position === null || position === this.#kept) return;
    try {
      await this.#runtime.keep(this.#key, position);
      this.#kept = position;
    } catch (thrown) {
      this.#runtime.warn('the position was not kept; what came behind it may come again', { error: String(thrown) });
    }
  }
}
