import type { Trouble } from '../connection.ts';
import { fieldsOf, textOf } from '../fields.ts';
import { type HttpAnswer, retryAfter, unanswered } from '../http.ts';
import { SendFailure, type SendFailureKind } from '../platform.ts';
import type { Redact } from '../redaction.ts';

const RETRY_MS = 1000;
/** DingTalk does not know the secret any more, but an operator may bring a new one: what is to be sent waits for that. */
const NEW_SECRET_MS = 60_000;
/** A limit of calls per second is over with the second; one of messages per minute takes longer. */
const PER_MINUTE_MS = 10_000;
const MOST_REASON = 300;

/** DingTalk has answered, and said no. */
export class Refusal extends Error {
  readonly status: number;
  /** A word of the API, or a number of the older one. */
  readonly code: string;
  readonly waitMs: number | null;

  constructor(status: number, code: string, message: string, waitMs: number | null) {
    super(message);
    this.name = 'Refusal';
    this.status = status;
    this.code = code;
    this.waitMs = waitMs;
  }

  /** The access token is not taken any more; a new one may be. */
  get isOldToken(): boolean {
    return this.status === 401 || OLD_TOKEN.test(this.code);
  }
}

const OLD_TOKEN = /^(?:InvalidAuthentication|40001|40014|42001)$/;
const UNKNOWN_APP = /^(?:invalidClientIdOrSecret|authFailed|notfound\.suitekey|invalidAppKey|40089)$/i;

/** What an answer refuses; null for one that does not. The API says it with a status, the older one with a number. */
export function refusalIn({ status, headers, body }: HttpAnswer, now: number): Refusal | null {
  const fields = fieldsOf(body);
  const number = fields?.errcode;
  const isFine = number === undefined || number === 0;
  if (status >= 200 && status < 300 && isFine) return null;
  const code = isFine ? textOf(fields?.code, 120) : String(number).slice(0, 40);
  const words = textOf(fields?.message ?? fields?.errmsg, MOST_REASON);
  const message = [code, words].filter((part) => part).join(': ') || `status ${status}`;
  return new Refusal(status, code ?? '', message, retryAfter(headers, now));
}

/** What a failed call says about the message. */
export function sendFailureOf(thrown: unknown, redact: Redact): SendFailure {
  if (!(thrown instanceof Refusal)) return unanswered(thrown, redact);
  const reason = redact(thrown.message);
  const { status, code, waitMs } = thrown;
  if (isThrottled(thrown)) {
    const leastMs = PER_MINUTE.has(code) ? PER_MINUTE_MS : RETRY_MS;
    return new SendFailure(reason, Math.max(waitMs ?? 0, leastMs), 'rate_limited');
  }
  if (thrown.isOldToken || UNKNOWN_APP.test(code)) return new SendFailure(reason, NEW_SECRET_MS, 'forbidden');
  if (status >= 500 || code === '-1') return new SendFailure(reason, waitMs ?? RETRY_MS, 'transient');
  return new SendFailure(reason, null, refusalKind(thrown));
}

/** Numbers of the older API: messages per minute, messages of one robot. */
const PER_MINUTE = new Set(['130101', '130102']);
const THROTTLED = /QpsLimit|Throttling|flow\.?control|too\.?frequent|^(?:90002|90018|88)$/i;

function isThrottled({ status, code }: Refusal): boolean {
  return status === 429 || PER_MINUTE.has(code) || THROTTLED.test(code);
}

/** By the code where there is one, and else by the words. */
const REFUSALS: readonly (readonly [RegExp, SendFailureKind])[] = [
  [/openConversationId|group\.disband|robot\.not\.?in\.?group|staffId\.not\.?exist|userIds\.invalid/i, 'gone'],
  [/^460101$|too\.?long|exceed.{0,40}(?:size|length)|length.{0,40}exceed/i, 'too_long'],
  [/AccessDenied|Forbidden|permission/i, 'forbidden'],
  [/msgParam|msgKey|^400002$|param/i, 'bad_format'],
];

function refusalKind({ status, code, message }: Refusal): SendFailureKind {
  const [, kind] = REFUSALS.find(([words]) => words.test(code === '' ? message : code)) ?? [];
  return kind ?? (status === 403 ? 'forbidden' : 'unknown');
}

/** What a failed call says about the connection. */
export function troubleOf(thrown: unknown, redact: Redact): Trouble {
  if (thrown instanceof Refusal) {
    const problem = redact(thrown.message);
    if (thrown.isOldToken || UNKNOWN_APP.test(thrown.code)) {
      return { phase: 'failed', problem: `DingTalk does not know client_id and client_secret: ${problem}`, waitMs: 0 };
    }
    return { phase: 'degraded', problem: `DingTalk refuses the connection: ${problem}`, waitMs: thrown.waitMs ?? 0 };
  }
  if (thrown instanceof ConnectionLost) return { phase: 'degraded', problem: redact(thrown.message), waitMs: 0 };
  return { phase: 'degraded', problem: unanswered(thrown, redact).message, waitMs: 0 };
}

/** The socket was open, and is not any more, or could not be opened. */
export class ConnectionLost extends Error {}
