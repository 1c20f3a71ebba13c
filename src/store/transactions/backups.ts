import { nullableInteger, nullableJson, selectValues } from '../table.ts';
import { query, type Tx, type TxContext } from '../transaction.ts';

export interface KeptBackup {
  /** When it was taken, epoch milliseconds. */
  readonly at: number;
  readonly file: string;
  /** Null where it was not known yet: the store comes from this very backup. */
  readonly bytes: number | null;
}

/** Remembers the newest backup of this store, for operators on any machine. */
export function* recordBackup(_ctx: TxContext, args: KeptBackup): Tx<void> {
  const { at, file, bytes } = args;
  yield* query(
    "INSERT INTO meta (name, value) VALUES ('backup', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    JSON.stringify({ at, file, bytes }),
  );
}

/** The newest backup, and since when there is something to lose. */
export function* lastBackup(
  _ctx: TxContext,
  _args: Record<never, never>,
): Tx<{ backup: KeptBackup | null; firstSessionAt: number | null }> {
  const [backup = null] = yield* selectValues(
    nullableJson<KeptBackup>(),
    "SELECT value FROM meta WHERE name = 'backup'",
  );
  const [firstSessionAt = null] = yield* selectValues(nullableInteger, 'SELECT min(started_at) FROM sessions');
  return { backup, firstSessionAt };
}
