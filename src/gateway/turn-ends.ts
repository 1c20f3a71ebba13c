import type { Timers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';

/** How often to ask about a turn that another process may be running. */
const POLL_MS = 500;

/**
 * Who waits for a turn to be over. The answer is always what the store says, whoever ran the turn: this process, another
 * one, or the next.
 */
export class TurnEnds {
  readonly #store: Store;
  readonly #timers: Timers;
  readonly #waiting = new Map<string, Set<(turn: TurnResultRow | null) => void>>();
  #cancelPoll: (() => void) | null = null;
  #closed = false;

  constructor(store: Store, timers: Timers) {
    this.#store = store;
    this.#timers = timers;
  }

  /** Resolves when the turn is over; with null when this process stops first, or there is no such turn. */
  wait(turnId: string): Promise<TurnResultRow | null> {
    if (this.#closed) return Promise.resolve(null);
    return new Promise((resolve) => {
      const waiters = this.#waiting.get(turnId) ?? new Set();
      this.#waiting.set(turnId, waiters.add(resolve));
      this.look(turnId);
      this.#poll();
    });
  }

  /** Asks the store now. */
  look(turnId: string): void {
    void this.#ask(turnId);
  }

  /** Asks a last time; whoever has no answer then waits in vain. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelPoll?.();
    await Promise.all([...this.#waiting.keys()].map((turnId) => this.#ask(turnId)));
    for (const turnId of this.#waiting.keys()) this.#tell(turnId, null);
  }

  async #ask(turnId: string): Promise<void> {
    if (!this.#waiting.has(turnId)) return;
    try {
      const turn = await this.#store.read('turnResult', { turnId });
      if (turn === null || turn.state === 'over') this.#tell(turnId, turn);
    } catch {
      // The next look may succeed.
    }
  }

  #tell(turnId: string, turn: TurnResultRow | null): void {
    const waiters = this.#waiting.get(turnId) ?? [];
    this.#waiting.delete(turnId);
    for (const tell of waiters) tell(turn);
  }

  #poll(): void {
    if (this.#cancelPoll !== null || this.#closed) return;
    this.#cancelPoll = this.#timers.after(POLL_MS, () => {
      this.#cancelPoll = null;
      for (const turnId of this.#waiting.keys()) this.look(turnId);
      if (this.#waiting.size > 0) this.#poll();
    });
  }
}
