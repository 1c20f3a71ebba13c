import type { Trouble } from '../connection.ts';
import { unanswered } from '../http.ts';
import { SendFailure, type SendFailureKind } from '../platform.ts';
import type { Redact } from '../redaction.ts';
import { GraphError } from './graph-api.ts';

const SOON_MS = 1000;
/** An operator may bring a new token, a right or a payment: what is to be sent waits for that. */
const OPERATOR_MS = 60_000;
/** Restrictions of an account last for hours. */
const LOCKED_MS = 600_000;

interface Meaning {
  readonly kind: SendFailureKind;
  /** Null when there is no use in trying again. */
  readonly afterMs: number | null;
}

const TOKEN: Meaning = { kind: 'forbidden', afterMs: OPERATOR_MS };
const LOCKED: Meaning = { kind: 'forbidden', afterMs: LOCKED_MS };
const REFUSED: Meaning = { kind: 'forbidden', afterMs: null };
const WRONG: Meaning = { kind: 'bad_format', afterMs: null };
const PASSES: Meaning = { kind: 'transient', afterMs: SOON_MS };
/** Perhaps a fault of the request, perhaps of the server: worth some tries. */
const MAY_PASS: Meaning = { kind: 'unknown', afterMs: SOON_MS };
const EXPIRED: Meaning = { kind: 'expired', afterMs: null };

const limited = (afterMs: number): Meaning => ({ kind: 'rate_limited', afterMs });

/** What the codes of the Cloud API mean for a message. */
const MEANINGS = new Map<number, Meaning>([
  ...each([0, 3, 10, 102, 190, 33, 131005, 131042, 131045, 133010], TOKEN),
  ...each([368, 131031], LOCKED),
  ...each([130497, 131021, 131030, 131037, 131055], REFUSED),
  ...each([100, 131008, 131009, 131051, 131052, 131053, 131062], WRONG),
  ...each([2, 131016, 131057, 133004], PASSES),
  ...each([1, 131000, 135000], MAY_PASS),
  [4, limited(60_000)],
  [80007, limited(60_000)],
  [130429, limited(SOON_MS)],
  [131048, limited(3_600_000)],
  [131056, limited(6000)],
  [131026, { kind: 'gone', afterMs: null }],
  [131047, EXPIRED],
]);

/** The pair of our number and one person has had enough; every other person may be written to. */
export const PAIR_LIMIT = 131056;

/** What a failed call says about the message. */
export function sendFailureOf(thrown: unknown, redact: Redact): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  if (!(thrown instanceof GraphError)) return unanswered(thrown, redact);
  const { kind, afterMs } = meaningOf(thrown);
  const wait = kind === 'rate_limited' ? Math.max(thrown.waitMs ?? 0, afterMs ?? 0) : afterMs;
  return new SendFailure(wordsOf(thrown, redact), wait, kind);
}

/** What a failed call says about the connection. */
export function troubleOf(thrown: unknown, redact: Redact): Trouble {
  if (!(thrown instanceof GraphError)) {
    const { message } = unanswered(thrown, redact);
    return { phase: 'degraded', problem: `WhatsApp cannot be reached: ${message}`, waitMs: 0 };
  }
  const problem = wordsOf(thrown, redact);
  if (isCredentialRefused(thrown)) {
    return { phase: 'failed', problem: `Meta does not take the token for this number: ${problem}`, waitMs: 0 };
  }
  const { kind, retryAfterMs } = sendFailureOf(thrown, redact);
  const waitMs = kind === 'rate_limited' || kind === 'forbidden' ? (retryAfterMs ?? 0) : 0;
  return { phase: 'degraded', problem, waitMs };
}

/** Whether the failure is about the account or the way to it, not about the message. */
export function concernsConnection({ kind, retryAfterMs }: SendFailure): boolean {
  return kind === 'transient' || kind === 'uncertain' || (kind === 'forbidden' && retryAfterMs !== null);
}

/**
 * Whether a message that was taken and did not arrive, as a status tells it, waits until they write. Then it is no template
 * any more: only who cannot be reached at all will not get it.
 */
export function waitsForThem(code: number | null, byTemplate: boolean): boolean {
  if (byTemplate) return MEANINGS.get(code ?? 0)?.kind !== 'gone';
  return code === 131047 || isAboutTemplates(code ?? 0);
}

/** No token, not the right one, or none for this number. */
function isCredentialRefused({ status, code, subcode }: GraphError): boolean {
  if (code === null) return status === 401;
  const isUnknownNumber = code === 33 || (code === 100 && subcode === 33);
  return isUnknownNumber || code === 0 || code === 10 || code === 102 || code === 190 || isRight(code);
}

function meaningOf({ status, code, subcode }: GraphError): Meaning {
  if (code === null) return byStatus(status);
  if (code === 100 && subcode === 33) return TOKEN;
  if (isRight(code)) return TOKEN;
  // Templates are sent only where nothing else may be: then the reply waits until they write.
  if (isAboutTemplates(code)) return EXPIRED;
  return MEANINGS.get(code) ?? byStatus(status);
}

function byStatus(status: number): Meaning {
  if (status === 401) return TOKEN;
  if (status === 413) return { kind: 'too_large', afterMs: null };
  if (status === 429) return limited(SOON_MS);
  // A message was taken that nobody has told the id of, or a server in between gave up waiting.
  if (status < 300 || status === 504) return { kind: 'uncertain', afterMs: SOON_MS };
  return status >= 500 ? PASSES : { kind: 'unknown', afterMs: null };
}

/** Something is wrong with a template, or the person is sent none now: a text may still be taken. */
function isAboutTemplates(code: number): boolean {
  return (code >= 132_000 && code < 133_000) || code === 130472 || code === 131049 || code === 131050;
}

function isRight(code: number): boolean {
  return code >= 200 && code < 300;
}

function wordsOf({ code, message }: GraphError, redact: Redact): string {
  return redact(code === null ? message : `${message} (code ${code})`);
}

function each(codes: readonly number[], meaning: Meaning): [number, Meaning][] {
  return codes.map((code) => [code, meaning]);
}
