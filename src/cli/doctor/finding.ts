export type Status = 'ok' | 'warn' | 'fail';

/** The outcome of one check. */
export interface Finding {
  readonly check: string;
  readonly status: Status;
  readonly message: string;
  /** What to do, where something is to be done. */
  readonly hint?: string;
  /** For programs: the figures behind the message. */
  readonly details?: unknown;
}
