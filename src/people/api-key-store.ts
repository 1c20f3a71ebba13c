import { MoiraiError } from '../errors/moirai-error.ts';
import type { ApiScope } from '../lifecycle/api-scopes.ts';
import { integer, type RowOf, Table, text, wordList } from '../store/table.ts';
import { query, type Tx, type TxContext } from '../store/transaction.ts';
import { lockKey } from '../store/transactions/sessions.ts';

const API_KEYS = new Table('api_keys', { name: text, scopes: wordList<ApiScope>(), createdAt: integer });

/** A key of an HTTP client, without what proves it. */
export type ApiKey = RowOf<typeof API_KEYS>;

/** The rows that are written. */
const ROWS = new Table('api_keys', { name: text, hash: text, scopes: wordList<ApiScope>(), createdAt: integer });

export interface ApiKeyToAdd {
  readonly name: string;
  /** Made with `hashApiKey`; the key itself is never written. */
  readonly hash: string;
  readonly scopes: readonly ApiScope[];
}

/** Throws `api_key_exists`: a name stands for one key, and for the conversations of its holder. */
export function* addApiKey(ctx: TxContext, args: ApiKeyToAdd): Tx<void> {
  const { name, hash, scopes } = args;
  yield* lockKey(ctx, 'api-keys');
  if ((yield* API_KEYS.selectOne('WHERE name = ?', name)) !== undefined) {
    throw new MoiraiError('api_key_exists', `there is a key called ${name}`);
  }
  yield [ROWS.insert({ name, hash, scopes, createdAt: ctx.now })];
}

/** False when there was no such key. */
export function* revokeApiKey(_ctx: TxContext, args: { name: string }): Tx<boolean> {
  return (yield* query('DELETE FROM api_keys WHERE name = ? RETURNING name', args.name)).length > 0;
}

export function* listApiKeys(_ctx: TxContext, _args: Record<never, never>): Tx<ApiKey[]> {
  return yield* API_KEYS.select('ORDER BY name');
}

export function* findApiKey(_ctx: TxContext, args: { hash: string }): Tx<ApiKey | null> {
  return (yield* API_KEYS.selectOne('WHERE hash = ?', args.hash)) ?? null;
}
