/** Why something was not sent or fetched, and whether to try again. */
export class SendFailure extends Error {
  /** When to try again at the earliest; null when there is no use in trying. */
  readonly retryAfterMs: number | null;
  readonly kind: SendFailureKind;

  constructor(message: string, retryAfterMs: number | null, kind: SendFailureKind = 'unknown') {
    super(message);
    this.name = 'SendFailure';
    this.retryAfterMs = retryAfterMs;
    this.kind = kind;
  }

  /** The server could not be reached, or asks for patience: to try again later is to wait, not to be refused. */
  get unreachable(): boolean {
    return this.retryAfterMs !== null && this.kind !== 'unknown' && this.kind !== 'uncertain';
  }
}

/**
 * - `gone`: the whole chat cannot be reached any more; everything else is about this message.
 * - `expired`: the time in which it may be answered is over. It waits for the next message from there.
 * - `uncertain`: the request left and no answer came: the server may have taken it. `retryAfterMs` is not null.
 * - `unknown`: refused for a reason that is not known; it is tried again some times.
 */
export type SendFailureKind =
  | 'gone'
  | 'forbidden'
  | 'too_long'
  | 'too_large'
  | 'bad_format'
  | 'rate_limited'
  | 'transient'
  | 'expired'
  | 'uncertain'
  | 'unknown';
