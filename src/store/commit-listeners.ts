import type { Effects } from './transaction.ts';

/** Who wants to know of commits. A listener sees only commits that left work for somebody. */
export class CommitListeners {
  readonly #listeners = new Set<(effects: Effects) => void>();

  add(listener: (effects: Effects) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  tell(effects: Effects): void {
    if (effects.queues.size === 0 && effects.nextDeadline === null) return;
    for (const listener of this.#listeners) listener(effects);
  }
}
