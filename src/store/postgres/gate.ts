/** So many may be inside at once; the others wait in the order they came, each for its time at most. */
export class Gate {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(places: number) {
    this.#free = places;
  }

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Resolves once there is a place; `leave` gives it back. */
  async enter(ms: number, refusal: () => Error): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const admit = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(admit), 1);
        reject(refusal());
      }, ms);
      this.#waiting.push(admit);
    });
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}

/**
 * One at a time per key, in the order they came. Writers of one conversation exclude each other on the server anyway:
 * those that wait here hold no connection.
 */
export class KeyGates {
  readonly #gates = new Map<string, Gate>();

  async enter(key: string, ms: number, refusal: () => Error): Promise<void> {
    const gate = this.#gates.get(key) ?? new Gate(1);
    this.#gates.set(key, gate);
    await gate.enter(ms, refusal);
  }

  leave(key: string): void {
    const gate = this.#gates.get(key);
    if (gate === undefined) return;
    // Whoever comes next makes a new gate; nobody is left who knows this one.
    if (gate.empty) this.#gates.delete(key);
    gate.leave();
  }
}
