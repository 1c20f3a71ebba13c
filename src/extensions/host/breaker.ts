const CONVERSATIONS = 3;
const FAILURES = 5;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Decides whether a hook as a whole is let work. One conversation's trouble is left to its own lane, which backs off by
 * itself. When several conversations fail in a row without a success between them, or the handler cannot be loaded, the
 * hook is sick: it rests, then one event is tried, and its fate decides.
 */
export class Breaker {
  readonly #elapsed: () => number;
  readonly #failed = new Set<string | null>();
  #failures = 0;
  #pauseMs = 0;
  #until = 0;
  #trying = false;

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
  }

  get open(): boolean {
    return this.#pauseMs > 0;
  }

  /** How many events make sense now: none while it rests, and one to see whether it is well again. */
  capacity(most: number): { lanes: number; againInMs: number } {
    if (!this.open) return { lanes: most, againInMs: 0 };
    const againInMs = Math.max(0, this.#until - this.#elapsed());
    return { lanes: againInMs > 0 || this.#trying ? 0 : 1, againInMs };
  }

  /** Whether an event may be handed over now. While the hook rests, this lets one through at its end. */
  admit(): boolean {
    if (!this.open) return true;
    if (this.#trying || this.#elapsed() < this.#until) return false;
    this.#trying = true;
    return true;
  }

  succeeded(): void {
    this.#failed.clear();
    this.#failures = 0;
    this.#pauseMs = 0;
    this.#trying = false;
  }

  /** An event of this conversation failed. */
  failed(conversation: string | null): void {
    // What was under way when the rest began says nothing new.
    if (this.open && !this.#trying) return;
    this.#failed.add(conversation);
    this.#failures++;
    if (this.#trying || (this.#failed.size >= CONVERSATIONS && this.#failures >= FAILURES)) this.trip();
  }

  /** It is no use trying for a while. */
  trip(): void {
    this.#trying = false;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs === 0 ? FIRST_PAUSE_MS : this.#pauseMs * 2);
    this.#until = this.#elapsed() + this.#pauseMs;
  }

  /** What was tried was called off, and says nothing. */
  calledOff(): void {
    this.#trying = false;
  }
}
