/** More than any store in trouble leaves unsettled; then the oldest is forgotten. */
const MOST = 10_000;

/**
 * Replies that a platform has taken and the store does not know of yet. It belongs to the process and outlives a gateway
 * in it: one that begins again under a new lease finds such a reply unsent in the store, and must not send it again.
 */
export class ArrivedReplies {
  readonly #messageIds = new Map<string, string | null>();

  /** `messageId` is how the platform names it, if it does. */
  note(deliveryId: string, messageId: string | null): void {
    this.#messageIds.set(deliveryId, messageId);
    if (this.#messageIds.size <= MOST) return;
    const [oldest] = this.#messageIds.keys();
    if (oldest !== undefined) this.#messageIds.delete(oldest);
  }

  /** Undefined for what is not known to have arrived. */
  find(deliveryId: string): { readonly messageId: string | null } | undefined {
    const messageId = this.#messageIds.get(deliveryId);
    return messageId === undefined ? undefined : { messageId };
  }

  forget(deliveryId: string): void {
    this.#messageIds.delete(deliveryId);
  }
}
