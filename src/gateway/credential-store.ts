import { nullableText, numberOf, query, queryOne, type Tx, type TxContext, textOf } from '../store/transaction.ts';
import { type CommandContext, enter, lockKey } from '../store/transactions/sessions.ts';

/** Who uses a credential that only one process may use. */
export interface CredentialHolder {
  readonly instance: string;
  readonly name: string | null;
  readonly host: string;
  readonly pid: number;
  readonly takenAt: number;
}

/**
 * Takes a credential for an instance, as long as its lease lives. Null when it is its own now; else who has it. A holder
 * that died or whose lease ran out holds nothing.
 */
export function* takeCredential(
  ctx: TxContext,
  args: { context: CommandContext; credential: string },
): Tx<CredentialHolder | null> {
  yield* enter(ctx, args.context);
  yield* lockKey(ctx, `credential:${args.credential}`);
  const held = yield* queryOne(
    `SELECT c.taken_at, i.id, i.name, i.host, i.pid FROM credentials c JOIN instances i ON i.id = c.instance
     WHERE c.name = ? AND i.state = 'up' AND i.lease_until > ?`,
    args.credential,
    ctx.leaseNow,
  );
  if (held !== undefined && textOf(held, 'id') !== args.context.instanceId) {
    return {
      instance: textOf(held, 'id'),
      name: nullableText(held, 'name'),
      host: textOf(held, 'host'),
      pid: numberOf(held, 'pid'),
      takenAt: numberOf(held, 'taken_at'),
    };
  }
  if (held !== undefined) return null;
  yield* query(
    `INSERT INTO credentials (name, instance, taken_at) VALUES (?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET instance = excluded.instance, taken_at = excluded.taken_at`,
    args.credential,
    args.context.instanceId,
    ctx.now,
  );
  return null;
}

/** Gives it back, so that nobody has to wait for a lease to run out. */
export function* releaseCredential(_ctx: TxContext, args: { instance: string; credential: string }): Tx<void> {
  yield* query('DELETE FROM credentials WHERE name = ? AND instance = ?', args.credential, args.instance);
}
