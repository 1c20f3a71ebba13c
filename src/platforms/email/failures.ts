import type { Trouble } from '../connection.ts';
import { fieldsOf, listOf } from '../fields.ts';
import { SendFailure, type SendFailureKind } from '../platform.ts';
import type { Redact } from '../redaction.ts';

const RETRY_MS = 5000;
/** Servers that count what is sent count by the minute, mostly. */
const PATIENCE_MS = 60_000;
/** A day's share is used up. */
const LONG_PATIENCE_MS = 3_600_000;
/** The server does not take the password, but an operator may bring a new one: what is to be sent waits for that. */
const NEW_PASSWORD_MS = 60_000;

/** What the libraries put on their errors; nothing of it is certain. */
interface MailError {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly command?: unknown;
  readonly originalCode?: unknown;
  readonly responseCode?: unknown;
  readonly response?: unknown;
  readonly responseText?: unknown;
  readonly serverResponseCode?: unknown;
  readonly authenticationFailed?: unknown;
  readonly tlsFailed?: unknown;
}

/** What a failed call of the IMAP server says about the connection. */
export function troubleOf(thrown: unknown, redact: Redact): Trouble {
  const problem = redact(problemOf(thrown));
  return { phase: isRefusedLogin(thrown) ? 'failed' : 'degraded', problem, waitMs: 0 };
}

function problemOf(thrown: unknown): string {
  const error = (thrown ?? {}) as MailError;
  const said = textIn(error.responseText) ?? textIn(error.response);
  if (error.authenticationFailed === true) return `the IMAP server does not take the user and password: ${said ?? ''}`;
  if (said !== null) return `the IMAP server refused: ${said}`;
  if (error.tlsFailed === true && textIn(error.code) === null) {
    return 'the IMAP server does not encrypt at this port (no STARTTLS), and the password is sent to no such server';
  }
  return `the IMAP server cannot be reached: ${codeOf(thrown)}`;
}

/** Codes that ask to come back later: of RFC 5530, and one of Google. */
const LATER: ReadonlySet<unknown> = new Set(['UNAVAILABLE', 'INUSE', 'LIMIT', 'THROTTLED']);
/** A login may also be refused for what is wrong at the server. */
const PASSING: ReadonlySet<unknown> = new Set([...LATER, 'SERVERBUG', 'CONTACTADMIN']);

function isRefusedLogin(thrown: unknown): boolean {
  const { authenticationFailed, serverResponseCode, responseText, response } = (thrown ?? {}) as MailError;
  if (authenticationFailed !== true || PASSING.has(serverResponseCode)) return false;
  // Some servers say it in words only.
  const said = textIn(responseText) ?? textIn(response) ?? '';
  return !/too many|temporar|try again|unavailable|internal error/i.test(said);
}

/** What a failed call of the IMAP server says about what it was for. */
export function mailboxFailure(thrown: unknown, redact: Redact): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  const problem = redact(problemOf(thrown));
  if (isRefusedLogin(thrown)) return new SendFailure(problem, NEW_PASSWORD_MS, 'forbidden');
  return new SendFailure(problem, RETRY_MS, 'transient');
}

/** The server could answer, and what it answered cannot be read: it is the same each time. */
export function isUnreadable(thrown: unknown): boolean {
  const error = (thrown ?? {}) as MailError;
  const { code, responseText, authenticationFailed } = error;
  if (authenticationFailed === true || LATER.has(responseCodeOf(error))) return false;
  return textIn(responseText) !== null || (typeof code === 'string' && UNREADABLE.test(code));
}

/** The code in brackets; the library reads it for some commands, and hands on the whole answer for others. */
function responseCodeOf({ serverResponseCode, response }: MailError): unknown {
  const [first] = listOf(fieldsOf(response)?.attributes);
  const [code] = listOf(fieldsOf(first)?.section);
  return serverResponseCode ?? fieldsOf(code)?.value;
}

const UNREADABLE =
  /^(?:ParserError|LiteralTooLarge|LineTooLarge|ResponseTooLarge|ResponseProcessingFailed|MAX_IMAP_NESTING|InvalidResponse)/;

/** What a failed transaction with the SMTP server says about the mail. `begun`: some of the mail itself was on its way. */
export function sendFailureOf(thrown: unknown, begun: boolean, redact: Redact): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  const error = (thrown ?? {}) as MailError;
  const status = typeof error.responseCode === 'number' ? error.responseCode : 0;
  if (status === 0) return noAnswer(thrown, begun, redact);
  const said = redact(textIn(error.response) ?? String(status));
  const reason = `the SMTP server refused: ${said}`;
  if (error.code === 'EAUTH') {
    const why = `the SMTP server does not take the user and password: ${said}`;
    return status < 500
      ? new SendFailure(why, RETRY_MS, 'transient')
      : new SendFailure(why, NEW_PASSWORD_MS, 'forbidden');
  }
  if (isQuota(said)) return new SendFailure(reason, status < 500 ? PATIENCE_MS : LONG_PATIENCE_MS, 'rate_limited');
  if (status < 500) return new SendFailure(reason, RETRY_MS, 'transient');
  if (BEFORE_MAIL.has(error.command)) {
    const what = error.command === 'STARTTLS' ? 'does not encrypt at this port' : 'takes no connection';
    return new SendFailure(`the SMTP server ${what}: ${said}`, PATIENCE_MS, 'transient');
  }
  return new SendFailure(reason, null, refusalKind(status, said));
}

/** What is refused here is the connection, whatever mail it is for: the greeting, the names, encryption. */
const BEFORE_MAIL: ReadonlySet<unknown> = new Set(['CONN', 'EHLO', 'HELO', 'STARTTLS']);

function noAnswer(thrown: unknown, begun: boolean, redact: Redact): SendFailure {
  const why = redact(codeOf(thrown));
  return begun
    ? new SendFailure(`the SMTP server gave no answer: ${why}`, RETRY_MS, 'uncertain')
    : new SendFailure(`the SMTP server cannot be reached: ${why}`, RETRY_MS, 'transient');
}

/** SMTP has no code for it: words and numbers of the common servers. */
function isQuota(said: string): boolean {
  return /\b4\.7\.28\b|\b5\.4\.5\b|\b4\.3\.2\b|too (?:many|much|fast|quickly)|rate limit|\bthrottl|sending limit|quota exceeded for sending|try again later/i.test(
    said,
  );
}

/** By the enhanced status code of RFC 3463, else by the code of the reply. */
function refusalKind(status: number, said: string): SendFailureKind {
  const [, subject, detail] = /\b5\.(\d{1,3})\.(\d{1,3})\b/.exec(said) ?? [];
  if (subject === '1' && detail !== '7' && detail !== '8') return 'gone';
  if (subject === '2') return detail === '1' ? 'gone' : detail === '3' ? 'too_large' : 'unknown';
  if (subject === '3') return detail === '4' ? 'too_large' : 'unknown';
  if (subject === '7') return 'forbidden';
  if (status === 550 || status === 553) return subject === undefined ? 'gone' : 'unknown';
  if (status === 552) return 'too_large';
  return status === 554 ? 'forbidden' : 'unknown';
}

/** Only names and codes: messages of network errors quote addresses. */
function codeOf(thrown: unknown): string {
  const { code, originalCode } = (thrown ?? {}) as MailError;
  return textIn(originalCode) ?? textIn(code) ?? (thrown instanceof Error ? thrown.name : 'unknown');
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim().slice(0, 300) : null;
}
