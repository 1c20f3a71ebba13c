/** Who brings a message again does so sooner; what is never brought again must not keep a chat silent. */
const LONGEST_MS = 60_000;
const MOST_CHATS = 1000;

interface Untaken {
  readonly id: string;
  until: number;
}

/**
 * What could not be taken and comes again, by chat: what was said after it waits for it, although the server brings
 * everything by itself and in no order.
 */
export class Waiting {
  readonly #now: () => number;
  readonly #chats = new Map<string, Untaken[]>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whether something that was said before this one has not come again yet. */
  isBlocked(chat: string, id: string): boolean {
    const first = this.#untakenOf(chat)[0];
    return first !== undefined && first.id !== id;
  }

  /** They come again, in this order. */
  add(chat: string, ids: readonly string[]): void {
    const untaken = this.#untakenOf(chat);
    const until = this.#now() + LONGEST_MS;
    for (const id of ids) {
      const known = untaken.find((each) => each.id === id);
      if (known === undefined) untaken.push({ id, until });
      else known.until = until;
    }
    this.#chats.delete(chat);
    this.#chats.set(chat, untaken);
    for (const oldest of this.#chats.keys()) {
      if (this.#chats.size <= MOST_CHATS) return;
      this.#chats.delete(oldest);
    }
  }

  remove(chat: string, id: string): void {
    const rest = this.#untakenOf(chat).filter((each) => each.id !== id);
    if (rest.length === 0) this.#chats.delete(chat);
    else this.#chats.set(chat, rest);
  }

  #untakenOf(chat: string): Untaken[] {
    const now = this.#now();
    return (this.#chats.get(chat) ?? []).filter(({ until }) => until > now);
  }
}
