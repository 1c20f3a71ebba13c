export interface CacheLimits {
  readonly maxSize: number;
  readonly idleTtlMs: number;
  readonly maxBytes: number;
}

interface Entry<Value> {
  readonly version: string;
  readonly value: Value;
  readonly bytes: number;
  usedAt: number;
}

/**
 * What is cheaper to remember than to make again: the least recently used goes first, what lies idle goes at the next
 * sweep, and all of it together stays within a budget of bytes. A version that differs is a miss, so that forgetting
 * or keeping changes nothing but time.
 */
export class AgentCache<Value> {
  readonly #limits: CacheLimits;
  readonly #now: () => number;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry<Value>>();
  #bytes = 0;

  constructor(limits: CacheLimits, now: () => number = Date.now) {
    this.#limits = limits;
    this.#now = now;
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: string, version: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const now = this.#now();
    if (entry.version !== version || this.#isIdle(entry, now)) {
      this.delete(key);
      return undefined;
    }
    entry.usedAt = now;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: string, version: string, value: Value, bytes: number): void {
    this.delete(key);
    // One entry beyond the budget would push everything else out and still not fit.
    if (bytes > this.#limits.maxBytes || this.#limits.maxSize < 1) return;
    this.#entries.set(key, { version, value, bytes, usedAt: this.#now() });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limits.maxSize && this.#bytes <= this.#limits.maxBytes) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }

  /** Lets go of everything idle. */
  sweep(now: number): void {
    for (const [key, entry] of this.#entries) {
      if (!this.#isIdle(entry, now)) break;
      this.delete(key);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  #isIdle(entry: Entry<Value>, now: number): boolean {
    return now - entry.usedAt >= this.#limits.idleTtlMs;
  }
}
