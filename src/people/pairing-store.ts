import { createHash, timingSafeEqual } from 'node:crypto';
import { MoiraiError } from '../errors/moirai-error.ts';
import { flag, integer, nullableInteger, nullableText, type RowOf, Table, text } from '../store/table.ts';
import { query, type Tx, type TxContext } from '../store/transaction.ts';
import { lockKey } from '../store/transactions/sessions.ts';

/** Somebody who asked to be let in, or was. */
const PAIRINGS = new Table('pairings', {
  platform: text,
  userId: text,
  /** As others see it: from outside. */
  name: nullableText,
  /** For whoever approves without the code, on a screen that is the operator's anyway. */
  requestId: text,
  requestedAt: integer,
  /** Null once approved. */
  expiresAt: nullableInteger,
  approvedAt: nullableInteger,
  /** May do everything: see `Access`. */
  admin: flag,
});

export type Pairing = RowOf<typeof PAIRINGS>;

/** The rows that are written, with what proves a code. */
const REQUESTS = new Table('pairings', {
  platform: text,
  userId: text,
  name: nullableText,
  requestId: text,
  salt: text,
  codeHash: text,
  requestedAt: integer,
  expiresAt: nullableInteger,
  approvedAt: nullableInteger,
  admin: flag,
});

/** Wrong codes in a row, by platform. */
const LOCKS = new Table('pairing_locks', { platform: text, failures: integer, lockedUntil: nullableInteger });

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
  const own = yield* PAIRINGS.selectOne('WHERE platform = ? AND user_id = ?', platform, userId);
  if (own !== undefined && own.approvedAt !== null) return 'paired';
  if (own !== undefined && ctx.now - own.requestedAt < PAIRING.everyMs) return 'quiet';
  yield* query(
    'DELETE FROM pairings WHERE platform = ? AND approved_at IS NULL AND expires_at <= ?',
    platform,
    ctx.now,
  );
  if (!(yield* makeRoom(ctx, platform, userId))) return 'quiet';
  const row = { ...args, requestedAt: ctx.now, expiresAt: ctx.now + PAIRING.ttlMs, approvedAt: null, admin: false };
  yield [
    REQUESTS.insert(
      row,
      `ON CONFLICT (platform, user_id) DO UPDATE SET name = excluded.name, request_id = excluded.request_id,
         salt = excluded.salt, code_hash = excluded.code_hash, requested_at = excluded.requested_at,
         expires_at = excluded.expires_at`,
    ),
  ];
  return 'asked';
}

/** Strangers must not keep others out for an hour: the oldest request makes room once it had its time to be noticed. */
function* makeRoom(ctx: TxContext, platform: string, userId: string): Tx<boolean> {
  const pending = yield* PAIRINGS.select(
    'WHERE platform = ? AND approved_at IS NULL AND user_id <> ? ORDER BY requested_at, user_id',
    platform,
    userId,
  );
  const [oldest] = pending;
  if (oldest === undefined || pending.length < PAIRING.maxPending) return true;
  if (ctx.now - oldest.requestedAt < PAIRING.everyMs) return false;
  yield* query('DELETE FROM pairings WHERE platform = ? AND user_id = ?', platform, oldest.userId);
  return true;
}

/**
 * Lets in whoever has this code or request id. A wrong code counts, and five in a row close the platform's door for an
 * hour. Throws `pairing_unknown` and `pairing_locked`; the failure is written all the same, so it is a result here. With
 * `firstIsAdmin` who is let in while there is no admin becomes one.
 */
export function* approvePairing(
  ctx: TxContext,
  args: { platform: string; code: string; firstIsAdmin: boolean },
): Tx<{ approved: Pairing } | { refused: 'unknown' | 'locked'; until: number | null }> {
  const { platform, code, firstIsAdmin } = args;
  // One lock for all platforms: two people who are let in at once must not both be the first.
  yield* lockKey(ctx, 'pairing-admin');
  yield* lockKey(ctx, `pairing:${platform}`);
  const pending = yield* REQUESTS.select(
    'WHERE platform = ? AND approved_at IS NULL AND expires_at > ?',
    platform,
    ctx.now,
  );
  const byId = pending.find(({ requestId }) => requestId === code);
  if (byId !== undefined) return { approved: yield* approve(ctx, byId, firstIsAdmin) };
  const lock = yield* LOCKS.selectOne('WHERE platform = ?', platform);
  const lockedUntil = lock?.lockedUntil ?? null;
  if (lockedUntil !== null && lockedUntil > ctx.now) return { refused: 'locked', until: lockedUntil };
  const byCode = pending.find((row) => isCode(row, code));
  if (byCode !== undefined) {
    yield* query('DELETE FROM pairing_locks WHERE platform = ?', platform);
    return { approved: yield* approve(ctx, byCode, firstIsAdmin) };
  }
  const failures = (lock === undefined || lockedUntil !== null ? 0 : lock.failures) + 1;
  const until = failures >= PAIRING.maxFailures ? ctx.now + PAIRING.lockMs : null;
  yield [
    LOCKS.insert(
      { platform, failures, lockedUntil: until },
      'ON CONFLICT (platform) DO UPDATE SET failures = excluded.failures, locked_until = excluded.locked_until',
    ),
  ];
  return { refused: 'unknown', until };
}

function isCode({ codeHash, salt }: RowOf<typeof REQUESTS>, code: string): boolean {
  const [known, given] = [Buffer.from(codeHash), Buffer.from(hashCode(salt, code))];
  return known.length === given.length && timingSafeEqual(known, given);
}

function* approve(ctx: TxContext, request: RowOf<typeof REQUESTS>, firstIsAdmin: boolean): Tx<Pairing> {
  const { salt: _, codeHash: _hash, ...pairing } = request;
  const admins = firstIsAdmin ? yield* PAIRINGS.select('WHERE admin = 1 LIMIT 1') : null;
  const admin = admins?.length === 0;
  yield* query(
    'UPDATE pairings SET approved_at = ?, expires_at = NULL, admin = ? WHERE platform = ? AND user_id = ?',
    ...[ctx.now, admin ? 1 : 0, pairing.platform, pairing.userId],
  );
  return { ...pairing, approvedAt: ctx.now, expiresAt: null, admin };
}

/** Lets somebody in without a code, because the operator names them. */
export function* admit(
  ctx: TxContext,
  args: { platform: string; userId: string; name: string | null; requestId: string },
): Tx<void> {
  if (args.userId.trim() === '') throw new MoiraiError('bad_input', 'a person to let in needs an id');
  const row = {
    ...{ ...args, salt: '', codeHash: '', admin: false },
    ...{ requestedAt: ctx.now, expiresAt: null, approvedAt: ctx.now },
  };
  yield [
    REQUESTS.insert(
      row,
      'ON CONFLICT (platform, user_id) DO UPDATE SET approved_at = excluded.approved_at, expires_at = NULL',
    ),
  ];
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

/** Makes somebody who was let in an admin, or takes that back; false when they were not let in. */
export function* setPairedAdmin(
  ctx: TxContext,
  args: { platform: string; userId: string; admin: boolean },
): Tx<boolean> {
  yield* lockKey(ctx, 'pairing-admin');
  const changed = yield* query(
    'UPDATE pairings SET admin = ? WHERE platform = ? AND user_id = ? AND approved_at IS NOT NULL RETURNING user_id',
    ...[args.admin ? 1 : 0, args.platform, args.userId],
  );
  return changed.length > 0;
}

/** Everybody who was let in, and who waits for it. */
export function* listPairings(ctx: TxContext, _args: Record<never, never>): Tx<Pairing[]> {
  return yield* PAIRINGS.select(
    'WHERE approved_at IS NOT NULL OR expires_at > ? ORDER BY requested_at, platform, user_id',
    ctx.now,
  );
}

export function* isPaired(_ctx: TxContext, args: { platform: string; userId: string }): Tx<boolean> {
  const row = yield* PAIRINGS.selectOne('WHERE platform = ? AND user_id = ?', args.platform, args.userId);
  return row !== undefined && row.approvedAt !== null;
}

export function* isPairedAdmin(_ctx: TxContext, args: { platform: string; userId: string }): Tx<boolean> {
  const row = yield* PAIRINGS.selectOne('WHERE platform = ? AND user_id = ?', args.platform, args.userId);
  return row !== undefined && row.approvedAt !== null && row.admin;
}
