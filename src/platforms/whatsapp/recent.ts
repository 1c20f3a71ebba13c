/** The newest entries; what is older than so many others is forgotten. */
export class Recent<V> {
  readonly #most: number;
  readonly #entries = new Map<string, V>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Whether it was there. */
  delete(key: string): boolean {
    return this.#entries.delete(key);
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#most) return;
      this.#entries.delete(oldest);
    }
  }
}
