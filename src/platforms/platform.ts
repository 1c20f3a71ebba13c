/** Where something is to be sent, in a platform's own ids; kept with the reply until it has left. */
export type Target = Readonly<Record<string, unknown>>;

/**
 * A way to reach people. A platform only translates: it knows nothing of sessions, and what it is told to send has been
 * made durable before.
 */
export interface Platform {
  readonly name: string;
  /**
   * Sends one text. Resolves when the platform has taken it. Throws `SendFailure`; any other error is taken for one that
   * may pass.
   */
  send(target: Target, text: string, signal: AbortSignal): Promise<void>;
}

/** Why something was not sent, and whether to try again. */
export class SendFailure extends Error {
  /** When to try again at the earliest; null when there is no use in trying. */
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null) {
    super(message);
    this.name = 'SendFailure';
    this.retryAfterMs = retryAfterMs;
  }
}
