import { type PlatformRuntime, SendFailure } from './platform.ts';

/** Chats the server does not want to hear from for a while: asking again before that makes the while longer. */
export class FloodGate {
  readonly #runtime: Pick<PlatformRuntime, 'now'>;
  readonly #closedUntil = new Map<string, number>();

  constructor(runtime: Pick<PlatformRuntime, 'now'>) {
    this.#runtime = runtime;
  }

  /** How long the server wants to hear nothing of a chat, in milliseconds; not above 0 when it does not mind. */
  closedFor(chat: string): number {
    return (this.#closedUntil.get(chat) ?? 0) - this.#runtime.now();
  }

  /** Throws while the chat is closed. */
  check(chat: string): void {
    const wait = this.closedFor(chat);
    if (wait > 0) throw new SendFailure('the server asked for patience with this chat', wait, 'rate_limited');
  }

  /** Closes the chat if the server refused for that reason. Returns the same failure. */
  note(chat: string, failure: SendFailure): SendFailure {
    const { kind, retryAfterMs } = failure;
    if (kind !== 'rate_limited' || retryAfterMs === null) return failure;
    const now = this.#runtime.now();
    for (const [other, until] of this.#closedUntil) if (until <= now) this.#closedUntil.delete(other);
    this.#closedUntil.set(chat, now + retryAfterMs);
    return failure;
  }
}
