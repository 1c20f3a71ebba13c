import { integer, nullableText, type RowOf, Table, text } from '../store/table.ts';
import { query, type Tx, type TxContext } from '../store/transaction.ts';
import { type CommandContext, enter, lockKey } from '../store/transactions/sessions.ts';

/** Who uses a credential that only one process may use. */
const HOLDERS = new Table('credentials', {
  instance: text,
  name: nullableText,
  host: text,
  pid: integer,
  takenAt: integer,
});

export type CredentialHolder = RowOf<typeof HOLDERS>;

const CREDENTIALS = new Table('credentials', { name: text, instance: text, takenAt: integer });

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
  const [held] = yield* HOLDERS.selectAs(
    `SELECT c.instance, i.name, i.host, i.pid, c.taken_at FROM credentials c JOIN instances i ON i.id = c.instance
     WHERE c.name = ? AND i.state = 'up' AND i.lease_until > ?`,
    args.credential,
    ctx.leaseNow,
  );
  if (held !== undefined) return held.instance === args.context.instanceId ? null : held;
  yield [
    CREDENTIALS.insert(
      { name: args.credential, instance: args.context.instanceId, takenAt: ctx.now },
      'ON CONFLICT (name) DO UPDATE SET instance = excluded.instance, taken_at = excluded.taken_at',
    ),
  ];
  return null;
}

/** Gives it back, so that nobody has to wait for a lease to run out. */
export function* releaseCredential(_ctx: TxContext, args: { instance: string; credential: string }): Tx<void> {
  yield* query('DELETE FROM credentials WHERE name = ? AND instance = ?', args.credential, args.instance);
}
