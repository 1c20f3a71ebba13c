import { SendFailure } from '../platform.ts';

/** Chats the server does not want to hear from for a while: asking again before makes the while longer. */
export class FloodGate {
  readonly #now: () => number;
  readonly #closedUntil = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  close(chat: string, ms: number): void {
    const now = this.#now();
    for (const [other, until] of this.#closedUntil) if (until <= now) this.#closedUntil.delete(other);
    this.#closedUntil.set(chat, now + ms);
  }

  isClosed(chat: string): boolean {
    return this.#remaining(chat) > 0;
  }

  /** Throws as the server would. */
  pass(chat: string): void {
    const remaining = this.#remaining(chat);
    if (remaining > 0) throw new SendFailure('Telegram asked for patience with this chat', remaining, 'rate_limited');
  }

  #remaining(chat: string): number {
    return (this.#closedUntil.get(chat) ?? 0) - this.#now();
  }
}
