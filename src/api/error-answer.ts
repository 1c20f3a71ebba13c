import { HTTPException } from 'hono/http-exception';
import { ERROR_HINTS, type ErrorCode } from '../errors/codes.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ApiContext, ApiLog } from './api.ts';
import { jsonMistake } from './request-body.ts';

type ErrorStatus = 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 429 | 500 | 502 | 503 | 504;

/** The status of each code that a request can meet. What is not listed is a defect, and 500. */
const STATUS: Partial<Record<ErrorCode, ErrorStatus>> = {
  bad_input: 400,
  bad_reason: 400,
  bad_key: 400,
  bad_policy: 400,
  bad_duration: 400,
  bad_schedule: 400,
  job_ambiguous: 400,
  target_unknown: 400,
  unknown_event: 400,
  unknown_command: 400,
  session_ambiguous: 400,
  unauthorized: 401,
  forbidden_client: 403,
  forbidden_host: 403,
  forbidden_origin: 403,
  forbidden_scope: 403,
  approval_forbidden: 403,
  not_found: 404,
  session_not_found: 404,
  job_not_found: 404,
  turn_not_found: 404,
  approval_not_found: 404,
  subscriber_not_found: 404,
  model_unknown: 404,
  method_not_allowed: 405,
  session_ended: 409,
  session_suspended: 409,
  session_exists: 409,
  key_busy: 409,
  illegal_move: 409,
  idempotency_conflict: 409,
  fenced: 409,
  turn_stopped: 409,
  approval_over: 409,
  message_too_large: 413,
  body_too_large: 413,
  unsupported_media_type: 415,
  too_many_failures: 429,
  model_rate_limited: 502,
  model_unauthorized: 502,
  model_unavailable: 502,
  model_cut: 502,
  model_refused: 502,
  model_overflow: 502,
  model_empty: 502,
  gateway_refused_key: 502,
  gateway_unreachable: 502,
  too_many_steps: 502,
  tool_failed: 502,
  draining: 503,
  platform_not_ready: 503,
  turn_interrupted: 503,
  gateway_not_running: 503,
  lease_lost: 503,
  store_full: 503,
  store_locked: 503,
  store_read_only: 503,
  store_corrupt: 503,
  store_unreachable: 503,
  store_closed: 503,
  store_io: 503,
  store_timeout: 503,
  store_refused: 503,
  store_newer: 503,
  store_replaced: 503,
  store_thread_died: 503,
  store_outcome_unknown: 503,
  gateway_slow: 504,
  model_timeout: 504,
  turn_timeout: 504,
};

export function statusOf(code: ErrorCode): ErrorStatus {
  return STATUS[code] ?? 500;
}

/** An error as clients see it. */
export interface ShownError {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  /** Of a turn that was taken. */
  readonly turn_id?: string;
}

/** What may be shown of an error: of a defect, that there is one. */
export function shownError(error: MoiraiError): ShownError {
  const { code, hint, details } = error;
  const message = statusOf(code) === 500 ? 'something went wrong inside the gateway; its log says what' : error.message;
  return { code, message, hint, ...(typeof details.turn_id === 'string' ? { turn_id: details.turn_id } : {}) };
}

/** The hint of a code that came as text, for turns that failed. */
export function hintOf(code: string): string {
  return Object.hasOwn(ERROR_HINTS, code) ? ERROR_HINTS[code as ErrorCode] : ERROR_HINTS.internal;
}

/** Paths whose clients were written for OpenAI and expect its errors. */
const OPENAI_PATH = /^\/v1\/(chat\/completions|responses|models)(\/|$)/;

const OPENAI_TYPES: Readonly<Partial<Record<number, string>>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  429: 'rate_limit_error',
};

/** The same error with the fields that OpenAI's clients read. */
export function openAiError(error: ShownError, status: number): ShownError & { type: string; param: null } {
  const type = OPENAI_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error');
  return { ...error, type, param: null };
}

/** Who is sent away by a gateway that stops finds its successor soon. */
const DRAIN_RETRY_SECONDS = 2;

const NOT_REPEATED: ReadonlySet<number> = new Set<ErrorStatus>([409, 500, 502, 504]);

/**
 * A client that repeats by itself would run a failed turn again, or one that goes on, or say again what may have been
 * taken; and it could not mend a conflict.
 */
function isNotToBeRepeated(code: ErrorCode): boolean {
  return NOT_REPEATED.has(statusOf(code)) || code === 'turn_interrupted' || code === 'store_outcome_unknown';
}

/** Answers a request that failed. */
export async function answerError(c: ApiContext, thrown: unknown, log: ApiLog): Promise<Response> {
  const error = MoiraiError.wrap(await fromHono(c, thrown));
  const status = statusOf(error.code);
  const shown = shownError(error);
  const { method, path } = c.req;
  if (status === 500) log.error('a request failed', { error, method, path });
  if (isNotToBeRepeated(error.code)) c.header('x-should-retry', 'false');
  if (status === 401) c.header('WWW-Authenticate', 'Bearer');
  if (error.code === 'forbidden_scope') c.header('WWW-Authenticate', 'Bearer error="insufficient_scope"');
  const wait = error.code === 'draining' ? DRAIN_RETRY_SECONDS : error.details.retryAfterSeconds;
  if (typeof wait === 'number') c.header('Retry-After', String(wait));
  const allow = error.details.allow;
  if (typeof allow === 'string') c.header('Allow', allow);
  const body = OPENAI_PATH.test(path) ? openAiError(shown, status) : shown;
  return c.json({ error: body }, status);
}

/** The framework's own errors say little; where a body is no JSON, the place is found by asking the parser again. */
async function fromHono(c: ApiContext, thrown: unknown): Promise<unknown> {
  if (!(thrown instanceof HTTPException)) return thrown;
  if (thrown.status === 415) {
    return new MoiraiError(
      'unsupported_media_type',
      `a body of type ${c.req.header('content-type')} is not understood`,
    );
  }
  if (thrown.status !== 400) return thrown;
  const mistake = jsonMistake(await c.req.text());
  return new MoiraiError('bad_input', `the body is not JSON: ${mistake}`, { cause: thrown });
}
