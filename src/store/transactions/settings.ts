import { selectValues, text } from '../table.ts';
import { query, type Tx, type TxContext } from '../transaction.ts';

/** Settings share a table with the store's own facts about itself, which nobody may change. */
const PREFIX = 'setting:';

/** Keeps a setting that was made in a conversation, not in the configuration. The last one counts. */
export function* keepSetting(_ctx: TxContext, args: { name: string; value: string }): Tx<void> {
  yield* query(
    'INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    `${PREFIX}${args.name}`,
    args.value,
  );
}

export function* findSetting(_ctx: TxContext, args: { name: string }): Tx<string | null> {
  const [value = null] = yield* selectValues(text, 'SELECT value FROM meta WHERE name = ?', `${PREFIX}${args.name}`);
  return value;
}
