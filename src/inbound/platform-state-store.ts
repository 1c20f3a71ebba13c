import { selectValues, text } from '../store/table.ts';
import { query, type Tx, type TxContext } from '../store/transaction.ts';
import { type CommandContext, enter } from '../store/transactions/sessions.ts';

/**
 * Keeps what a platform wants to know after a restart: a cursor, a session to resume. Null forgets it. Refused without a
 * live lease: another process may be using the platform by then.
 */
export function* keepPlatformState(
  ctx: TxContext,
  args: { context: CommandContext; platform: string; name: string; value: string | null },
): Tx<void> {
  yield* enter(ctx, args.context);
  const { platform, name, value } = args;
  if (value === null) {
    yield* query('DELETE FROM platform_state WHERE platform = ? AND name = ?', platform, name);
    return;
  }
  yield* query(
    `INSERT INTO platform_state (platform, name, value) VALUES (?, ?, ?)
     ON CONFLICT (platform, name) DO UPDATE SET value = excluded.value`,
    platform,
    name,
    value,
  );
}

export function* platformState(_ctx: TxContext, args: { platform: string; name: string }): Tx<string | null> {
  const sql = 'SELECT value FROM platform_state WHERE platform = ? AND name = ?';
  const [value = null] = yield* selectValues(text, sql, args.platform, args.name);
  return value;
}
