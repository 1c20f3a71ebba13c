/** A map that forgets what was not used for the longest time. */
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

  set(key: string, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size <= this.#most) return;
    for (const [oldest, forgotten] of this.#values) {
      this.#values.delete(oldest);
      this.#forgotten(forgotten);
      return;
    }
  }

  values(): Iterable<V> {
    return this.#values.values();
  }
}
