import type { PlatformRuntime } from '../platform.ts';
import type { WebhookRequests, WebhookScope } from './requests.ts';

/** What lasts so long is kept for the next process. */
const KEPT_MS = 12 * 3_600_000;
const LONGEST_KEPT = 256 * 1024;
const MOST_ENTRIES = 10_000;
const MOST_OF_A_LIST = 1000;

interface Entry {
  readonly value: unknown;
  /** Epoch milliseconds; null for ever. */
  readonly until: number | null;
}

interface Claim extends Entry {
  /** The webhook that works on it; null for none, or none any more. */
  by: WebhookScope | null;
}

interface Lock {
  readonly threadId: string;
  readonly token: string;
  expiresAt: number;
}

/**
 * What adapters remember. They use it for tokens and addresses, which are kept; for locks, which are of this process; and to
 * know what they have seen, which is forgotten again when the inbox could not take it: what comes again is then new, and
 * what was taken is known to the inbox by its id. There is no queue in it: the inbox is the only one.
 */
export class AdapterState {
  readonly #runtime: PlatformRuntime;
  readonly #requests: WebhookRequests;
  readonly #entries = new Map<string, Entry>();
  readonly #claims = new Map<string, Claim>();
  readonly #locks = new Map<string, Lock>();
  #lastToken = 0;

  constructor(runtime: PlatformRuntime, requests: WebhookRequests) {
    this.#runtime = runtime;
    this.#requests = requests;
  }

  async connect(): Promise<void> {}

  async disconnect(): Promise<void> {}

  async get<T = unknown>(key: string): Promise<T | null> {
    const claim = this.#claims.get(key);
    const claimed = claim?.by?.failed === true ? undefined : claim;
    const entry = claimed ?? this.#entries.get(key) ?? (await this.#recall(key));
    return entry !== null && this.#isLive(entry) ? (entry.value as T) : null;
  }

  async set<T = unknown>(key: string, value: T, ttlMs?: number): Promise<void> {
    const entry = { value, until: this.#untilOf(ttlMs) };
    this.#remember(key, entry);
    if (ttlMs !== undefined && ttlMs < KEPT_MS) return;
    const text = JSON.stringify(entry);
    if (text.length <= LONGEST_KEPT) await this.#runtime.keep(nameOf(key), text);
  }

  async delete(key: string): Promise<void> {
    this.#claims.delete(key);
    this.#entries.delete(key);
    await this.#runtime.keep(nameOf(key), null);
  }

  /** Says true once for each key: whoever is told so works on it, and if that fails it is said again. */
  async setIfNotExists(key: string, value: unknown, ttlMs?: number): Promise<boolean> {
    const scope = this.#requests.current;
    for (let claim = this.#claims.get(key); claim !== undefined && this.#isLive(claim); claim = this.#claims.get(key)) {
      // The same is being worked on just now: whether it is a repetition depends on what comes of that.
      if (claim.by === null || claim.by === scope || (await claim.by.outcome)) return false;
      if (this.#claims.get(key) === claim) this.#claims.delete(key);
    }
    const claim: Claim = { value, until: this.#untilOf(ttlMs), by: scope };
    this.#claims.set(key, claim);
    forgetOldest(this.#claims);
    // What a webhook held need not be kept for as long as the key is known.
    void scope?.outcome.then((isTaken) => {
      if (isTaken) claim.by = null;
    });
    return true;
  }

  async acquireLock(threadId: string, ttlMs: number): Promise<Lock | null> {
    // Who only waits for it belongs to its holder as well.
    this.#requests.current?.locks.add(threadId);
    const now = this.#runtime.now();
    const held = this.#locks.get(threadId);
    if (held !== undefined && held.expiresAt > now) return null;
    const lock = { threadId, token: String(++this.#lastToken), expiresAt: now + ttlMs };
    this.#locks.set(threadId, lock);
    return lock;
  }

  async extendLock(lock: Lock, ttlMs: number): Promise<boolean> {
    const held = this.#locks.get(lock.threadId);
    if (held?.token !== lock.token) return false;
    held.expiresAt = this.#runtime.now() + ttlMs;
    return true;
  }

  async releaseLock(lock: Lock): Promise<void> {
    if (this.#locks.get(lock.threadId)?.token === lock.token) this.#locks.delete(lock.threadId);
  }

  async forceReleaseLock(threadId: string): Promise<void> {
    this.#locks.delete(threadId);
  }

  async appendToList(key: string, value: unknown, options: { maxLength?: number; ttlMs?: number } = {}): Promise<void> {
    const most = Math.min(options.maxLength ?? MOST_OF_A_LIST, MOST_OF_A_LIST);
    const list = [...(await this.getList(key)), value].slice(-most);
    this.#remember(listOf(key), { value: list, until: this.#untilOf(options.ttlMs) });
  }

  async getList<T = unknown>(key: string): Promise<T[]> {
    const entry = this.#entries.get(listOf(key));
    return entry !== undefined && this.#isLive(entry) ? (entry.value as T[]) : [];
  }

  async isSubscribed(_threadId: string): Promise<boolean> {
    return false;
  }

  async subscribe(_threadId: string): Promise<void> {}

  async unsubscribe(_threadId: string): Promise<void> {}

  async enqueue(_threadId: string, _entry: unknown, _maxSize: number): Promise<number> {
    throw new TypeError('the inbox of the gateway is the only queue');
  }

  async dequeue(_threadId: string): Promise<null> {
    return null;
  }

  async queueDepth(_threadId: string): Promise<number> {
    return 0;
  }

  #remember(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    forgetOldest(this.#entries);
  }

  async #recall(key: string): Promise<Entry | null> {
    const text = await this.#runtime.recall(nameOf(key));
    if (text === null) return null;
    const entry = JSON.parse(text) as Entry;
    this.#remember(key, entry);
    return entry;
  }

  #untilOf(ttlMs: number | undefined): number | null {
    return ttlMs === undefined ? null : this.#runtime.now() + ttlMs;
  }

  #isLive({ until }: { readonly until: number | null }): boolean {
    return until === null || until > this.#runtime.now();
  }
}

function forgetOldest(map: Map<string, unknown>): void {
  if (map.size <= MOST_ENTRIES) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}

function nameOf(key: string): string {
  return `state:${key}`;
}

function listOf(key: string): string {
  return `list:${key}`;
}
