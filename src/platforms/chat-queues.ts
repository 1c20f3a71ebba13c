/** Runs what concerns one chat one after the other, in order; chats beside each other. */
export class ChatQueues {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Resolves or rejects as the work does. What fails keeps nothing behind it. */
  async run<T>(chat: string, work: () => Promise<T>): Promise<T> {
    const done = (this.#last.get(chat) ?? Promise.resolve()).then(work);
    const settled = done.catch(() => undefined);
    this.#last.set(chat, settled);
    try {
      return await done;
    } finally {
      if (this.#last.get(chat) === settled) this.#last.delete(chat);
    }
  }

  /** Resolves when everything that was begun is over. */
  async settle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
