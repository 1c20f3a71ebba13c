import type { Trouble } from '../connection.ts';
import { fieldsOf } from '../fields.ts';
import { unanswered } from '../http.ts';
import type { Redact } from '../redaction.ts';
import { SendFailure } from '../send-failure.ts';

const RETRY_MS = 1000;
const PATIENCE_MS = 5000;
/** An operator may bring another credential. */
const NEW_CREDENTIAL_MS = 60_000;

/** What a failed call of an adapter says about the connection. */
export function troubleOf(thrown: unknown, redact: Redact): Trouble {
  const phase = codeOf(thrown) === 'AUTH_FAILED' || statusOf(thrown) === 401 ? 'failed' : 'degraded';
  return { phase, problem: redact(reasonOf(thrown)), waitMs: 0 };
}

/**
 * What a failed call of an adapter says about the message. Adapters have a few kinds of errors in common; the clients below
 * them tell a status.
 */
export function sendFailureOf(thrown: unknown, redact: Redact): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  const reason = redact(reasonOf(thrown));
  const wait = retryAfterOf(thrown);
  const status = statusOf(thrown);
  if (codeOf(thrown) === 'RATE_LIMITED' || status === 429 || (status === 403 && wait !== null)) {
    return new SendFailure(reason, wait ?? PATIENCE_MS, 'rate_limited');
  }
  const cause = networkCauseOf(thrown);
  if (cause !== null) {
    const { kind } = unanswered(cause, redact);
    return new SendFailure(reason, RETRY_MS, kind);
  }
  // The server answered: with an error of its own, or with something that is no answer.
  if (codeOf(thrown) === 'NETWORK_ERROR' || (status !== null && status >= 500)) {
    return new SendFailure(reason, RETRY_MS, 'transient');
  }
  return refusalOf(thrown, status, reason);
}

function refusalOf(thrown: unknown, status: number | null, reason: string): SendFailure {
  const code = codeOf(thrown);
  if (code === 'AUTH_FAILED' || status === 401) return new SendFailure(reason, NEW_CREDENTIAL_MS, 'forbidden');
  if (code === 'PERMISSION_DENIED' || status === 403) return new SendFailure(reason, null, 'forbidden');
  if (code === 'VALIDATION_ERROR' || status === 422) return new SendFailure(reason, null, 'bad_format');
  if (code === 'NOT_FOUND' || (status !== null && status >= 400)) return new SendFailure(reason, null, 'unknown');
  // Nobody can say what became of it.
  return new SendFailure(reason, RETRY_MS, 'uncertain');
}

/** Whether a refusal says that what was asked for is so already. */
export function says(thrown: unknown, words: RegExp): boolean {
  return words.test(reasonOf(thrown)) || (words.source.includes('not found') && statusOf(thrown) === 404);
}

function reasonOf(thrown: unknown): string {
  return (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, 500);
}

function codeOf(thrown: unknown): unknown {
  return fieldsOf(thrown)?.code;
}

function statusOf(thrown: unknown): number | null {
  const fields = fieldsOf(thrown);
  const status = fields?.status ?? fields?.statusCode;
  return typeof status === 'number' ? status : null;
}

/** The error of the network below; the adapters wrap it in one of their own. */
function networkCauseOf(thrown: unknown): Error | null {
  const original = fieldsOf(thrown)?.originalError;
  if (original instanceof Error) return original;
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const { code } = error as { code?: unknown };
    if (typeof code === 'string' && /^(?:E[A-Z]+|EAI_\w+|UND_ERR_\w+)$/.test(code)) return error;
    if (error.name === 'AbortError' || error.name === 'TimeoutError') return error;
  }
  return null;
}

function retryAfterOf(thrown: unknown): number | null {
  const fields = fieldsOf(thrown);
  const headers = fieldsOf(fieldsOf(fields?.response)?.headers);
  const seconds = Number(fields?.retryAfter ?? headers?.['retry-after'] ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
}
