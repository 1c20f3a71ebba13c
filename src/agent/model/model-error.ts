import type { ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';

/** An answer that began well and cannot be read to its end. */
export class BrokenAnswer extends Error {}

/** What is known of a failed request, whatever threw it. */
interface Failure {
  readonly status: number | null;
  readonly text: string;
  readonly type: string;
  readonly retryAfterMs: number | null;
}

/**
 * What a model server or the way to it threw, as an error a person can act on. `details.retryAfterMs` is set when the
 * server said how long to wait. The key never appears in a message.
 */
export function modelError(thrown: unknown, baseUrl: string, apiKey: string | null): MoiraiError {
  if (thrown instanceof MoiraiError) return thrown;
  const failure = failureOf(thrown);
  const code = codeOf(failure, thrown);
  const said = `${sentences[code] ?? 'the model server failed'} (${placeOf(baseUrl)})${reason(failure)}`;
  const message = apiKey ? said.replaceAll(apiKey, '***') : said;
  const details = {
    ...(failure.status === null ? {} : { status: failure.status }),
    ...(failure.retryAfterMs === null ? {} : { retryAfterMs: failure.retryAfterMs }),
  };
  return new MoiraiError(code, message, { details, cause: thrown });
}

const sentences: Readonly<Partial<Record<ErrorCode, string>>> = {
  model_unauthorized: 'the model server refused the key',
  model_rate_limited: 'the model server asks to slow down',
  model_unavailable: 'the model server is not available',
  model_timeout: 'the model server took too long',
  model_cut: 'the stream from the model server broke off',
  model_unknown: 'the model server does not know the model',
  model_refused: 'the model server refused the request',
  model_overflow: 'the conversation is longer than the model can read',
};

function codeOf({ status, text, type }: Failure, thrown: unknown): ErrorCode {
  const said = `${type} ${text}`;
  if (thrown instanceof Error && thrown.name === 'TimeoutError') return 'model_timeout';
  if (thrown instanceof BrokenAnswer) return 'model_cut';
  if (OVERFLOW.test(said) && (status === null || status === 400 || status === 413)) return 'model_overflow';
  if (status === 401 || status === 403 || /authentication_error|invalid_api_key/.test(type))
    return 'model_unauthorized';
  if (status === 429 || /rate_limit/.test(type)) return 'model_rate_limited';
  if (status === 404 || /model_not_found|not_found_error/.test(type)) return 'model_unknown';
  if (status === 408 || status === 504) return 'model_timeout';
  if (status !== null && status >= 500) return 'model_unavailable';
  if (status !== null && status >= 400) return 'model_refused';
  if (/overloaded|server_error|api_error/.test(type)) return 'model_unavailable';
  // It answered well and then could not be read to the end.
  if (status !== null) return 'model_cut';
  if (CUT.test(text)) return 'model_cut';
  return 'model_unavailable';
}

const OVERFLOW =
  /context_length|context length|context window|context size|maximum context|prompt is too long|too many (input )?tokens|request_too_large/i;

/** A connection that was made and then lost; one that was never made is a server that is not there. */
const CUT = /terminated|other side closed|socket hang up|without a finish reason|interrupted|premature|aborted/i;

function failureOf(thrown: unknown): Failure {
  const fields = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Record<string, unknown>;
  const body = parsed(fields.responseBody) ?? fields;
  const inner = (typeof body.error === 'object' && body.error !== null ? body.error : body) as Record<string, unknown>;
  const type = [inner.type, inner.code].filter((value) => typeof value === 'string').join(' ');
  const status = typeof fields.statusCode === 'number' ? fields.statusCode : null;
  const cause = status !== null && status < 400 ? rootCause(thrown) : undefined;
  const texts = [cause, inner.message, body.error, fields.message, thrown].filter((value) => typeof value === 'string');
  return {
    status,
    text: texts[0] ?? '',
    type: type.toLowerCase(),
    retryAfterMs: retryAfter(fields.responseHeaders),
  };
}

/** What broke under an answer that began well. */
function rootCause(thrown: unknown): string | undefined {
  let error = thrown;
  while (error instanceof Error && error.cause !== undefined) error = error.cause;
  return error instanceof Error ? error.message : undefined;
}

function parsed(body: unknown): Record<string, unknown> | null {
  if (typeof body !== 'string') return null;
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    // A proxy's page, not the server's own answer: its text says nothing a person can use.
    return null;
  }
}

/** The header counts in seconds or names a date; some servers have one of their own in milliseconds. */
function retryAfter(headers: unknown): number | null {
  if (typeof headers !== 'object' || headers === null) return null;
  const { 'retry-after-ms': ms, 'retry-after': value } = headers as Record<string, string | undefined>;
  if (ms !== undefined && Number.isFinite(Number(ms))) return Number(ms);
  if (value === undefined) return null;
  if (Number.isFinite(Number(value))) return Number(value) * 1_000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now());
}

/** Where a server is, for people. */
export function placeOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).host : baseUrl;
}

const LONGEST_REASON = 500;

function reason({ status, text }: Failure): string {
  const parts = [status === null || status < 400 ? '' : `status ${status}`, text.trim().slice(0, LONGEST_REASON)];
  const said = parts.filter((part) => part !== '').join(', ');
  return said === '' ? '' : `: ${said}`;
}
