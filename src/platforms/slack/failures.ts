import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError, WebAPIRequestError } from '@slack/web-api';
import type { Trouble } from '../connection.ts';
import { fieldsOf, textOf } from '../fields.ts';
import { unanswered } from '../http.ts';
import { SendFailure, type SendFailureKind } from '../platform.ts';
import type { Redact } from '../redaction.ts';

const RETRY_MS = 1000;
/** Slack knows the token no more, but an operator may bring a new one: what is to be sent waits for that. */
const NEW_TOKEN_MS = 60_000;
/** Where the server asks for patience and does not say how much. */
const PATIENCE_MS = 30_000;
const MOST_REASON = 200;

/** What no waiting changes, found by ourselves. */
export class UnusableToken extends Error {}

/** The socket ended, or never began. */
export class SocketLost extends Error {}

const CREDENTIAL = [
  ...['invalid_auth', 'not_authed', 'account_inactive', 'token_revoked', 'token_expired', 'no_permission'],
  ...['team_disabled', 'user_removed_from_team', 'not_allowed_token_type', 'missing_scope'],
];
const LOST_CREDENTIAL = new Set(CREDENTIAL.slice(0, 5));

/** What a failed call says about the connection. */
export function troubleOf(thrown: unknown, redact: Redact): Trouble {
  const own = thrown instanceof WebAPIRequestError ? thrown.original : thrown;
  if (own instanceof UnusableToken) return { phase: 'failed', problem: own.message, waitMs: 0 };
  const code = refusalOf(thrown);
  const problem = redact(reasonOf(thrown, redact));
  if (code !== null && CREDENTIAL.includes(code)) {
    return { phase: 'failed', problem: `Slack does not take the token: ${problem}`, waitMs: 0 };
  }
  return { phase: 'degraded', problem, waitMs: patienceOf(thrown) ?? 0 };
}

/** What a failed call says about the message. */
export function sendFailureOf(thrown: unknown, redact: Redact): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  if (thrown instanceof UnusableToken) return new SendFailure(thrown.message, NEW_TOKEN_MS, 'forbidden');
  if (thrown instanceof WebAPIRequestError) return unanswered(thrown.original, redact);
  const reason = redact(reasonOf(thrown, redact));
  const patience = patienceOf(thrown);
  if (patience !== null) return new SendFailure(reason, patience, 'rate_limited');
  if (thrown instanceof WebAPIHTTPError) return failureOfStatus(thrown.statusCode, reason);
  const code = refusalOf(thrown);
  if (code === null) return unanswered(thrown, redact);
  if (LOST_CREDENTIAL.has(code)) return new SendFailure(reason, NEW_TOKEN_MS, 'forbidden');
  const kind = KINDS.get(code);
  // What is no code is no answer of the Web API, but a page of something on the way.
  const isCode = /^[a-z][a-z0-9_]*$/.test(code);
  if (kind === 'uncertain' || !isCode) return new SendFailure(reason, RETRY_MS, 'uncertain');
  return new SendFailure(reason, null, kind ?? (code.startsWith('restricted_action') ? 'forbidden' : 'unknown'));
}

const KINDS = new Map<string, SendFailureKind>(
  Object.entries({
    gone: ['channel_not_found', 'is_archived', 'not_in_channel', 'user_not_found', 'user_disabled', 'cannot_dm_bot'],
    forbidden: [
      ...['missing_scope', 'not_allowed_token_type', 'no_permission', 'access_denied', 'ekm_access_denied'],
      ...['cant_update_message', 'cant_delete_message', 'edit_window_closed', 'not_in_group', 'thread_locked'],
      'messages_tab_disabled',
    ],
    too_long: ['msg_too_long', 'msg_blocks_too_long'],
    too_large: ['file_too_large', 'storage_limit_reached', 'post_contents_too_large'],
    bad_format: ['invalid_blocks', 'invalid_blocks_format', 'invalid_arguments', 'invalid_arg_name', 'no_text'],
    uncertain: ['internal_error', 'fatal_error', 'service_unavailable', 'request_timeout'],
  } satisfies Partial<Record<SendFailureKind, readonly string[]>>).flatMap(([kind, codes]) =>
    codes.map((code) => [code, kind as SendFailureKind] as const),
  ),
);

/** One that says that it is away has not taken it; any other may have failed behind that. */
function failureOfStatus(status: number, reason: string): SendFailure {
  if (status === 503) return new SendFailure(reason, RETRY_MS, 'transient');
  if (status >= 500) return new SendFailure(reason, RETRY_MS, 'uncertain');
  return new SendFailure(reason, null, status === 413 ? 'too_large' : 'unknown');
}

/** The code with which Slack refused; null where it did not. */
export function refusalOf(thrown: unknown): string | null {
  if (!(thrown instanceof WebAPIPlatformError)) return null;
  const { error } = thrown.data as { error?: unknown };
  return typeof error === 'string' ? error : 'no reason given';
}

/** True when Slack refused a call for one of these reasons. */
export function isRefusal(thrown: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(refusalOf(thrown) ?? '');
}

function patienceOf(thrown: unknown): number | null {
  if (thrown instanceof WebAPIRateLimitedError) return Math.max(RETRY_MS, thrown.retryAfter * 1000);
  if (isRefusal(thrown, 'ratelimited', 'rate_limited', 'message_limit_exceeded')) return PATIENCE_MS;
  // The library has no class for an answer 429 without the header.
  return thrown instanceof Error && thrown.message.startsWith('Retry header') ? PATIENCE_MS : null;
}

/** What somebody can do about a refusal, where its code does not say it. */
const HINTS = new Map([
  ['not_in_channel', 'the app is not in the channel: /invite it there'],
  ['channel_not_found', 'there is no such channel, or it is private and the app is not in it'],
  ['messages_tab_disabled', 'turn on "Messages Tab" under "App Home" of the app'],
  ['not_allowed_token_type', 'that is the other kind of token'],
]);

function hintOf(thrown: unknown, code: string): string[] {
  const needed = textOf(fieldsOf((thrown as WebAPIPlatformError).data)?.needed, 64);
  const hint = HINTS.get(code) ?? (needed ? `it needs ${needed}` : undefined);
  return hint === undefined ? [] : [`(${hint})`];
}

function reasonOf(thrown: unknown, redact: Redact): string {
  const code = refusalOf(thrown);
  if (code !== null) return `Slack refused: ${[code.slice(0, MOST_REASON), ...hintOf(thrown, code)].join(' ')}`;
  if (thrown instanceof WebAPIRateLimitedError) return 'Slack asked for patience';
  if (thrown instanceof WebAPIHTTPError) return `Slack returned status ${thrown.statusCode}`;
  if (thrown instanceof WebAPIRequestError) return unanswered(thrown.original, redact).message;
  if (thrown instanceof SocketLost || thrown instanceof SendFailure) return thrown.message;
  return unanswered(thrown, redact).message;
}
