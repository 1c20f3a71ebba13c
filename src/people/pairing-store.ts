import { createHash, timingSafeEqual } from 'node:crypto';
import { MoiraiError } from '../errors/moirai-error.ts';
import {
  nullableNumber,
  nullableText,
  numberOf,
  type Param,
  query,
  queryOne,
  type Row,
  type Tx,
  type TxContext,
  textOf,
} from '../store/transaction.ts';
import { lockKey } from '../store/transactions/sessions.ts';

/** Somebody who asked to be let in, or was. */
export interface Pairing {
  readonly platform: string;
  readonly userId: string;
  /** As others see it: from outside. */
  readonly name: string | null;
  /** For whoever approves without the code, on a screen that is the operator's anyway. */
  readonly requestId: string;
  readonly requestedAt: number;
  /** Null once approved. */
  readonly expiresAt: number | null;
  readonly approvedAt: number | null;
}

export const PAIRING = {
  ttlMs: 3_600_000,
  /** Nobody gets codes faster than this. */
  everyMs: 600_000,
  maxPending: 3,
  maxFailures: 5,
  lockMs: 3_600_000,
} as const;

export interface PairingRequest {
  readonly platform: string;
  readonly userId: string;
  readonly name: string | null;
  readonly requestId: string;
  readonly salt: string;
  /** Made with `hashCode`; the code itself is never written. */
  readonly codeHash: string;
}

export function hashCode(salt: string, code: string): string {
  return createHash('sha256').update(`${salt}:${code.toUpperCase()}`).digest('hex');
}

/**
 * Somebody unknown asks to be let in. `asked`: the code counts from now on. `quiet`: there was one a short while ago, or
 * too many wait: nothing is said. `paired`: let in already.
 */
export function* requestPairing(ctx: TxContext, args: PairingRequest): Tx<'asked' | 'quiet' | 'paired'> {
  const { platform, userId } = args;
  yield* lockKey(ctx, `pairing:${platform}`);
  const own = yield* queryOne('SELECT * FROM pairings WHERE platform = ? AND user_id = ?', platform, userId);
  if (own !== undefined && nullableNumber(own, 'approved_at') !== null) return 'paired';
  if (own !== undefined && ctx.now - numberOf(own, 'requested_at') < PAIRING.everyMs) return 'quiet';
  yield* query(
    'DELETE FROM pairings WHERE platform = ? AND approved_at IS NULL AND expires_at <= ?',
    platform,
    ctx.now,
  );
  if (!(yield* makeRoom(ctx, platform, userId))) return 'quiet';
  const row: Param[] = [platform, userId, args.name, args.requestId, args.salt, args.codeHash, ctx.now];
  yield* query(
    `INSERT INTO pairings (platform, user_id, name, request_id, salt, code_hash, requested_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (platform, user_id) DO UPDATE SET name = excluded.name, request_id = excluded.request_id,
       salt = excluded.salt, code_hash = excluded.code_hash, requested_at = excluded.requested_at,
       expires_at = excluded.expires_at`,
    ...row,
    ctx.now + PAIRING.ttlMs,
  );
  return 'asked';
}

/** Strangers must not keep others out for an hour: the oldest request makes room once it had its time to be noticed. */
function* makeRoom(ctx: TxContext, platform: string, userId: string): Tx<boolean> {
  const pending = yield* query(
    'SELECT * FROM pairings WHERE platform = ? AND approved_at IS NULL AND user_id <> ? ORDER BY requested_at, user_id',
    platform,
    userId,
  );
  if (pending.length < PAIRING.maxPending) return true;
  const oldest = pending[0] as Row;
  if (ctx.now - numberOf(oldest, 'requested_at') < PAIRING.everyMs) return false;
  yield* query('DELETE FROM pairings WHERE platform = ? AND user_id = ?', platform, textOf(oldest, 'user_id'));
  return true;
}

/**
 * Lets in whoever has this code or request id. A wrong code counts, and five in a row close the platform's door for an
 * hour. Throws `pairing_unknown` and `pairing_locked`; the failure is written all the same, so it is a result here.
 */
export function* approvePairing(
  ctx: TxContext,
  args: { platform: string; code: string },
): Tx<{ approved: Pairing } | { refused: 'unknown' | 'locked'; until: number | null }> {
  const { platform, code } = args;
  yield* lockKey(ctx, `pairing:${platform}`);
  const pending = yield* query(
    'SELECT * FROM pairings WHERE platform = ? AND approved_at IS NULL AND expires_at > ?',
    platform,
    ctx.now,
  );
  const byId = pending.find((row) => textOf(row, 'request_id') === code);
  if (byId !== undefined) return { approved: yield* approve(ctx, byId) };
  const lock = yield* queryOne('SELECT * FROM pairing_locks WHERE platform = ?', platform);
  const lockedUntil = lock === undefined ? null : nullableNumber(lock, 'locked_until');
  if (lockedUntil !== null && lockedUntil > ctx.now) return { refused: 'locked', until: lockedUntil };
  const byCode = pending.find((row) => isCode(row, code));
  if (byCode !== undefined) {
    yield* query('DELETE FROM pairing_locks WHERE platform = ?', platform);
    return { approved: yield* approve(ctx, byCode) };
  }
  const failures = (lock === undefined || lockedUntil !== null ? 0 : numberOf(lock, 'failures')) + 1;
  const until = failures >= PAIRING.maxFailures ? ctx.now + PAIRING.lockMs : null;
  yield* query(
    `INSERT INTO pairing_locks (platform, failures, locked_until) VALUES (?, ?, ?)
     ON CONFLICT (platform) DO UPDATE SET failures = excluded.failures, locked_until = excluded.locked_until`,
    platform,
    failures,
    until,
  );
  return { refused: 'unknown', until };
}

function isCode(row: Row, code: string): boolean {
  const [known, given] = [textOf(row, 'code_hash'), hashCode(textOf(row, 'salt'), code)].map((hash) =>
    Buffer.from(hash),
  );
  return known !== undefined && given !== undefined && known.length === given.length && timingSafeEqual(known, given);
}

function* approve(ctx: TxContext, row: Row): Tx<Pairing> {
  yield* query(
    'UPDATE pairings SET approved_at = ?, expires_at = NULL WHERE platform = ? AND user_id = ?',
    ctx.now,
    textOf(row, 'platform'),
    textOf(row, 'user_id'),
  );
  return { ...toPairing(row), approvedAt: ctx.now, expiresAt: null };
}

/** Lets somebody in without a code, because the operator names them. */
export function* admit(
  ctx: TxContext,
  args: { platform: string; userId: string; name: string | null; requestId: string },
): Tx<void> {
  if (args.userId.trim() === '') throw new MoiraiError('bad_input', 'a person to let in needs an id');
  yield* query(
    `INSERT INTO pairings (platform, user_id, name, request_id, salt, code_hash, requested_at, approved_at)
     VALUES (?, ?, ?, ?, '', '', ?, ?)
     ON CONFLICT (platform, user_id) DO UPDATE SET approved_at = excluded.approved_at, expires_at = NULL`,
    args.platform,
    args.userId,
    args.name,
    args.requestId,
    ctx.now,
    ctx.now,
  );
}

/** Shuts somebody out again, or takes back a request; false when there was none. */
export function* revokePairing(ctx: TxContext, args: { platform: string; userId: string }): Tx<boolean> {
  yield* lockKey(ctx, `pairing:${args.platform}`);
  const gone = yield* query(
    'DELETE FROM pairings WHERE platform = ? AND user_id = ? RETURNING user_id',
    args.platform,
    args.userId,
  );
  return gone.length > 0;
}

/** Everybody who was let in, and who waits for it. */
export function* listPairings(ctx: TxContext, _args: Record<never, never>): Tx<Pairing[]> {
  const rows = yield* query(
    'SELECT * FROM pairings WHERE approved_at IS NOT NULL OR expires_at > ? ORDER BY requested_at, platform, user_id',
    ctx.now,
  );
  return rows.map(toPairing);
}

export function* isPaired(_ctx: TxContext, args: { platform: string; userId: string }): Tx<boolean> {
  const row = yield* queryOne(
    'SELECT user_id FROM pairings WHERE platform = ? AND user_id = ? AND approved_at IS NOT NULL',
    args.platform,
    args.userId,
  );
  return row !== undefined;
}

function toPairing(row: Row): Pairing {
  return {
    platform: textOf(row, 'platform'),
    userId: textOf(row, 'user_id'),
    name: nullableText(row, 'name'),
    requestId: textOf(row, 'request_id'),
    requestedAt: numberOf(row, 'requested_at'),
    expiresAt: nullableNumber(row, 'expires_at'),
    approvedAt: nullableNumber(row, 'approved_at'),
  };
}
