import { GrammyError, HttpError } from 'grammy/web';
import type { Trouble } from '../connection.ts';
import { unanswered } from '../http.ts';
import { SendFailure, type SendFailureKind } from '../platform.ts';

const RETRY_MS = 1000;
/** Telegram does not know the token any more, but an operator may bring a new one: what is to be sent waits for that. */
const NEW_TOKEN_MS = 60_000;

export interface TelegramTrouble extends Trouble {
  readonly webhookInTheWay: boolean;
}

/** What a failed call says about the connection. */
export function troubleOf(thrown: unknown, redact: (text: string) => string): TelegramTrouble {
  const problem = redact(reasonOf(thrown));
  const trouble = { problem, waitMs: 0, webhookInTheWay: false };
  if (!(thrown instanceof GrammyError)) return { ...trouble, phase: 'degraded' };
  switch (thrown.error_code) {
    case 401:
    case 404:
      return { ...trouble, phase: 'failed', problem: `Telegram does not know the token: ${problem}` };
    case 409:
      return { ...trouble, phase: 'standby', webhookInTheWay: /webhook/i.test(thrown.description) };
    default:
      return { ...trouble, phase: 'degraded', waitMs: retryAfterOf(thrown) ?? 0 };
  }
}

/** What a failed call says about the message. */
export function sendFailureOf(thrown: unknown, redact: (text: string) => string): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  const reason = redact(reasonOf(thrown));
  if (!(thrown instanceof GrammyError)) return new SendFailure(reason, RETRY_MS, noAnswerKind(thrown, redact));
  const { error_code: code } = thrown;
  if (code === 429) return new SendFailure(reason, retryAfterOf(thrown) ?? RETRY_MS, 'rate_limited');
  if (code >= 500) return new SendFailure(reason, RETRY_MS, 'transient');
  if (code === 401 || code === 404) return new SendFailure(reason, NEW_TOKEN_MS, 'forbidden');
  return new SendFailure(reason, null, refusalKind(code, thrown.description));
}

/** A server that answered something else than the Bot API has not taken it. */
function noAnswerKind(thrown: unknown, redact: (text: string) => string): SendFailureKind {
  const cause = thrown instanceof HttpError ? thrown.error : thrown;
  return cause instanceof SyntaxError ? 'transient' : unanswered(cause, redact).kind;
}

/** The Bot API has no codes for these: its words are the only sign, and they have been the same for years. */
const REFUSALS: readonly (readonly [RegExp, SendFailureKind])[] = [
  [/message is too long|caption is too long|too big|too large|entity too large/i, 'too_long'],
  [/can't parse|unsupported start tag|button_data_invalid/i, 'bad_format'],
  [/thread not found|topic/i, 'unknown'],
  [
    /chat not found|peer_id_invalid|user is deactivated|blocked|kicked|not a member|can't initiate|group chat was deleted/i,
    'gone',
  ],
  [/not enough rights|no rights|write_forbidden|have no write access|need administrator/i, 'forbidden'],
];

function refusalKind(code: number, description: string): SendFailureKind {
  if (code === 413) return 'too_long';
  const [, kind] = REFUSALS.find(([words]) => words.test(description)) ?? [];
  return kind ?? (code === 403 ? 'forbidden' : 'unknown');
}

/** True when the Bot API refused a call with words like these. */
export function isRefusal(thrown: unknown, words: RegExp): thrown is GrammyError {
  return thrown instanceof GrammyError && thrown.error_code === 400 && words.test(thrown.description);
}

/** The chat that a group has become, when that is why the call failed. */
export function successorOf(thrown: unknown): string | null {
  const id = thrown instanceof GrammyError ? thrown.parameters.migrate_to_chat_id : undefined;
  return id === undefined ? null : String(id);
}

function retryAfterOf({ parameters }: GrammyError): number | null {
  const seconds = parameters.retry_after;
  return typeof seconds === 'number' && seconds >= 0 ? seconds * 1000 : null;
}

function reasonOf(thrown: unknown): string {
  if (thrown instanceof GrammyError) return `${thrown.method}: ${thrown.description}`;
  if (thrown instanceof HttpError) return `Telegram cannot be reached: ${causeOf(thrown.error)}`;
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Only names and codes: messages of network errors quote addresses. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error instanceof SyntaxError) return 'the answer is not JSON';
  const { code } = (error.cause ?? error) as { code?: unknown };
  return typeof code === 'string' ? code : error.name;
}
