/** A map of limited size: what was not used for the longest time is forgotten. */
export class Recent<V> {
  readonly #values = new Map<string, V>();
  readonly #most: number;
  readonly #forgotten: (value: V) => void;

  constructor(most: number, forgotten: (value: V) => void = () => undefined) {
    this.#most = most;
    this.#forgotten = forgotten;
  }

  get(key: string): V | undefined {
    const value = this.#values.get(key);
    if (value === undefined) return undefined;
    this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  set(key: string, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    for (const [oldest, forgotten] of this.#values) {
      if (this.#values.size <= this.#most) return;
      this.#values.delete(oldest);
      this.#forgotten(forgotten);
    }
  }

  /** Whether it was there. */
  delete(key: string): boolean {
    return this.#values.delete(key);
  }

  values(): Iterable<V> {
    return this.#values.values();
  }

  entries(): readonly (readonly [string, V])[] {
    return [...this.#values];
  }
}
