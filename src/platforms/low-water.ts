/**
 * The position below which everything is durable. Positions are begun in the order in which the server gave them and done
 * in any order; what may be kept as the cursor is the last one with nothing open before it.
 */
export class LowWater<T> {
  readonly #open: { readonly position: T; done: boolean }[] = [];
  #mark: T | null = null;

  /** Null until the first position is done. */
  get mark(): T | null {
    return this.#mark;
  }

  /** How many positions wait. */
  get size(): number {
    return this.#open.length;
  }

  /** The returned function tells that the inbox has it; returns whether the mark has moved. */
  begin(position: T): () => boolean {
    const entry = { position, done: false };
    this.#open.push(entry);
    return () => {
      entry.done = true;
      let moved = false;
      while (this.#open[0]?.done) {
        this.#mark = this.#open.shift()?.position ?? this.#mark;
        moved = true;
      }
      return moved;
    };
  }

  /** What is open comes again from the server. */
  clear(): void {
    this.#open.length = 0;
  }
}
