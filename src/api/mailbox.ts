/**
 * What waits for one reader. It is bounded: a reader who does not read is noticed, instead of being paid for with
 * memory.
 */
export class Mailbox<T> {
  readonly #limit: number;
  #items: T[] = [];
  #size = 0;
  #closed = false;
  #wake: () => void = () => undefined;

  /** The limit is in the unit of the sizes given to `put`. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** False when there is no room; the item is not kept then. */
  put(item: T, size: number): boolean {
    if (this.#closed) return true;
    if (this.#size + size > this.#limit && this.#items.length > 0) return false;
    this.#items.push(item);
    this.#size += size;
    this.#wake();
    return true;
  }

  /** Nothing more will come but, where given, one last item; that one is always kept. */
  close(...last: [T] | []): void {
    if (!this.#closed) this.#items.push(...last);
    this.#closed = true;
    this.#wake();
  }

  /** All that waits, as soon as something does; nothing after `ms` without; null once it is closed and empty. */
  async take(ms: number): Promise<readonly T[] | null> {
    if (this.#items.length === 0 && !this.#closed) await this.#arrival(ms);
    const items = this.#items;
    if (items.length === 0 && this.#closed) return null;
    this.#items = [];
    this.#size = 0;
    return items;
  }

  /** All that comes, as it comes, until it is closed or the signal aborts; nothing after each `ms` without. */
  async *batches(ms: number, signal: AbortSignal): AsyncGenerator<readonly T[], void> {
    const leave = (): void => this.close();
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    try {
      for (let items = await this.take(ms); items !== null; items = await this.take(ms)) yield items;
    } finally {
      signal.removeEventListener('abort', leave);
      this.close();
    }
  }

  #arrival(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
