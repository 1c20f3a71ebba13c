import type { Trouble } from '../connection.ts';
import { SendFailure, type SendFailureKind } from '../platform.ts';
import type { Redact } from '../redaction.ts';
import { CredentialRefused, GatewayClosed, QqError } from './qq-error.ts';

const RETRY_MS = 1000;
/** An operator may bring what is missing: what is to be sent waits for that. */
const NEW_CREDENTIAL_MS = 60_000;
/** QQ says that it was too often, and not how long to wait. */
const TOO_OFTEN_MS = 5000;
const SLOW_DOWN_MS = 60_000;

/** The pair of the message and the number has been taken before. */
const DUPLICATE = 40054005;
/** QQ has it, and shows it once somebody has looked at it. */
const AWAITS_AUDIT: ReadonlySet<number> = new Set([304023, 304024]);
const BANNED = 11265;

type Refusal = readonly [kind: SendFailureKind, retryAfterMs: number | null, codes: readonly number[]];

/** What the codes of QQ mean for a message. What is not named is `unknown`. */
const REFUSALS: readonly Refusal[] = [
  // The window is over, its answers are used up, or the message cannot be answered at all; and what is said unasked is refused.
  ['expired', null, [40034128, 40034005, 304103, 304026, 304027, 304028, 40034024, 40034025, 40034026, 40034027]],
  ['expired', null, [40034105, 40034102, 304022, 304035, 304045, 304046, 304047, 304048, 304049, 304050]],
  ['gone', null, [40034101, 40054003, 40054004, 1100104, 304031, 304032, 304033, 304034, 10003, 10004, 610007]],
  ['rate_limited', TOO_OFTEN_MS, [22009, 20028, 40034100, 1100100, 1100308, 50002, 100001, 620006, 610013]],
  ['transient', RETRY_MS, [11252, 11263, 11281, 11242, 50001, 50055001, 50055002, 1100300, 40054006, 340067]],
  ['transient', RETRY_MS, [304016, 304018, 40034004, 40093001, 850026, 850027, 40054016]],
  ['forbidden', NEW_CREDENTIAL_MS, [11241, 11243, 11251, 11261, 11275, BANNED]],
  ['forbidden', null, [11253, 11254, 11264, 11274, 11282, 40054002, 40054013, 850018, 40034006, 304025, 1100101]],
  ['forbidden', null, [1100102, 1100103, 1100301, 1100303, 1100306, 620005]],
  ['too_long', null, [40054007, 40054018]],
  ['too_large', null, [304020, 850031, 40093002]],
  ['bad_format', null, [22006, 50006, 50037, 304003, 304036, 304061, 40034011, 40034124, 40034127, 40054010, 850019]],
];
const BY_CODE = new Map(REFUSALS.flatMap(([kind, ms, codes]) => codes.map((code) => [code, { kind, ms }] as const)));

export function isDuplicate(thrown: unknown): thrown is QqError {
  return thrown instanceof QqError && thrown.code === DUPLICATE;
}

export function awaitsAudit(thrown: unknown): thrown is QqError {
  return thrown instanceof QqError && AWAITS_AUDIT.has(thrown.code);
}

/** What a failed call says about the message. */
export function sendFailureOf(thrown: unknown, redact: Redact): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  if (!(thrown instanceof QqError)) {
    return new SendFailure(redact(thrown instanceof Error ? thrown.message : String(thrown)), RETRY_MS, 'uncertain');
  }
  const { status, code, waitMs } = thrown;
  const reason = redact(thrown.message);
  if (thrown instanceof CredentialRefused) return new SendFailure(reason, NEW_CREDENTIAL_MS, 'forbidden');
  const known = BY_CODE.get(code);
  if (known?.kind === 'expired') return new SendFailure(`${EXPIRED}: ${reason}`, null, 'expired');
  if (status === 429 || known?.kind === 'rate_limited') {
    return new SendFailure(reason, waitMs ?? known?.ms ?? TOO_OFTEN_MS, 'rate_limited');
  }
  if (known !== undefined) return new SendFailure(reason, known.ms, known.kind);
  if (status === 401) return new SendFailure(reason, NEW_CREDENTIAL_MS, 'forbidden');
  // An answer from in front of the server, as of a proxy that waited too long: it may have arrived.
  if (status === 504) return new SendFailure(reason, RETRY_MS, 'uncertain');
  if (status >= 500) return new SendFailure(reason, RETRY_MS, 'transient');
  return new SendFailure(reason, null, status === 413 ? 'too_large' : 'unknown');
}

const EXPIRED = 'QQ takes answers for a while only, and not more than a few to one message';

/** Closing codes that mean: slower. */
const TOO_FAST = 4008;
/** No waiting changes these: what we sent is wrong, or the bot may only be in the sandbox, or is banned. */
const FINAL_CLOSES: ReadonlyMap<number, string> = new Map([
  [4001, 'it does not know an opcode that was sent'],
  [4002, 'it cannot read what was sent'],
  [4010, 'it does not take the shard'],
  [4011, 'the bot is in too many guilds for one connection'],
  [4012, 'it does not take the version'],
  [4013, 'it does not know the events that were asked for'],
  [4014, 'the bot may not have the events that were asked for'],
  [4914, 'the bot is offline and may only be used in the sandbox: publish it, or set platforms.qq.sandbox'],
  [4915, 'the bot is banned'],
]);

/** What a failed call or a closed socket says about the connection. */
export function troubleOf(thrown: unknown, redact: Redact): Trouble {
  const problem = redact(thrown instanceof Error ? thrown.message : String(thrown));
  if (thrown instanceof GatewayClosed) {
    const final = FINAL_CLOSES.get(thrown.code);
    if (final !== undefined) return { phase: 'failed', problem: `QQ refuses the connection: ${final}`, waitMs: 0 };
    return { phase: 'degraded', problem, waitMs: thrown.code === TOO_FAST ? SLOW_DOWN_MS : 0 };
  }
  if (thrown instanceof CredentialRefused) {
    return { phase: 'failed', problem: `QQ does not know the AppID or the AppSecret: ${problem}`, waitMs: 0 };
  }
  if (!(thrown instanceof QqError)) return { phase: 'degraded', problem, waitMs: 0 };
  return { phase: thrown.code === BANNED ? 'failed' : 'degraded', problem, waitMs: thrown.waitMs ?? 0 };
}
