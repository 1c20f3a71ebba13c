import { MoiraiError } from '../../errors/moirai-error.ts';

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

/** A check that could not be made. */
export function failed(check: string, thrown: unknown): Finding {
  const { code, message, hint } = MoiraiError.wrap(thrown);
  return { check, status: 'fail', message: `${message} [${code}]`, hint, details: { code } };
}
