import type { Trouble } from '../connection.ts';
import { unanswered } from '../http.ts';
import { SendFailure, type SendFailureKind } from '../platform.ts';
import type { Redact } from '../redaction.ts';
import { ApiError } from './api.ts';

const RETRY_MS = 1000;
/** The token counts no longer, but an operator may bring a new one: what is to be sent waits for that. */
const NEW_TOKEN_MS = 60_000;
const NEW_TOKEN = 'Log in with the account once more and give the new token.';

/** The token is that of another account than the one that is configured. */
export class WrongUser extends Error {
  constructor(configured: string, actual: string) {
    super(`the access token is that of ${actual}, and user_id says ${configured}: correct one of them`);
    this.name = 'WrongUser';
  }
}

const NO_TOKEN: ReadonlySet<string> = new Set(['M_UNKNOWN_TOKEN', 'M_MISSING_TOKEN']);
const NO_ACCOUNT: ReadonlySet<string> = new Set(['M_USER_DEACTIVATED', 'M_USER_LOCKED', 'M_USER_SUSPENDED']);

/** What a failed call says about the connection. */
export function troubleOf(thrown: unknown, redact: Redact): Trouble {
  const trouble = { phase: 'degraded', problem: reasonOf(thrown, redact), waitMs: 0 } as const;
  if (thrown instanceof WrongUser) return { ...trouble, phase: 'failed' };
  if (!(thrown instanceof ApiError)) return trouble;
  const { code, status, message, waitMs } = thrown;
  if (NO_ACCOUNT.has(code)) return { ...trouble, phase: 'failed', problem: `the account cannot be used: ${message}` };
  if (status === 401 || NO_TOKEN.has(code)) {
    return {
      ...trouble,
      phase: 'failed',
      problem: `the homeserver does not take the access token: ${message}. ${NEW_TOKEN}`,
    };
  }
  return { ...trouble, waitMs: waitMs ?? 0 };
}

/** What a failed call says about the message. */
export function sendFailureOf(thrown: unknown, redact: Redact): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  if (!(thrown instanceof ApiError)) return unanswered(thrown, redact);
  const reason = reasonOf(thrown, redact);
  const { status, code, waitMs } = thrown;
  if (status === 429 || code === 'M_LIMIT_EXCEEDED') return new SendFailure(reason, waitMs ?? RETRY_MS, 'rate_limited');
  if (thrown.mayPass) return new SendFailure(reason, waitMs ?? RETRY_MS, 'transient');
  if (status === 401 || NO_TOKEN.has(code)) return new SendFailure(reason, NEW_TOKEN_MS, 'forbidden');
  return new SendFailure(reason, null, refusalKind(status, code));
}

function refusalKind(status: number, code: string): SendFailureKind {
  if (status === 413 || code === 'M_TOO_LARGE') return 'too_long';
  if (status === 403) return 'forbidden';
  if (code === 'M_NOT_FOUND') return 'gone';
  return BAD.has(code) ? 'bad_format' : 'unknown';
}

const BAD: ReadonlySet<string> = new Set(['M_BAD_JSON', 'M_NOT_JSON', 'M_INVALID_PARAM', 'M_MISSING_PARAM']);

/** Whether a call was refused with this code. */
export function isRefusal(thrown: unknown, ...codes: readonly string[]): thrown is ApiError {
  return thrown instanceof ApiError && codes.includes(thrown.code);
}

function reasonOf(thrown: unknown, redact: Redact): string {
  if (thrown instanceof ApiError || thrown instanceof WrongUser) return redact(thrown.message);
  return unanswered(thrown, redact).message;
}
