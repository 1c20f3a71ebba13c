import { ERROR_HINTS, type ErrorCode } from './codes.ts';

/** What crosses a thread, a process or the wire; `MoiraiError.from` makes an error of it again. */
export interface ErrorData {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/**
 * The only error class Moirai throws. The code is stable, the message says what happened and where, the hint says
 * what to do.
 */
export class MoiraiError extends Error {
  override readonly name = 'MoiraiError';
  readonly code: ErrorCode;
  readonly hint: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: { details?: Record<string, unknown>; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = ERROR_HINTS[code];
    this.details = options.details ?? {};
  }

  /** Rebuilds an error that came from another thread or process. */
  static from(data: ErrorData): MoiraiError {
    return new MoiraiError(data.code, data.message, { details: { ...data.details } });
  }

  /** Any thrown value as a coded error: unknown ones become `internal` and keep their cause. */
  static wrap(thrown: unknown, code: ErrorCode = 'internal'): MoiraiError {
    if (thrown instanceof MoiraiError) return thrown;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new MoiraiError(code, message, { cause: thrown });
  }

  toJSON(): ErrorData {
    return { code: this.code, message: this.message, hint: this.hint, details: this.details };
  }
}

/** True for an error with one of these codes. */
export function hasCode(error: unknown, ...codes: ErrorCode[]): error is MoiraiError {
  return error instanceof MoiraiError && codes.includes(error.code);
}
