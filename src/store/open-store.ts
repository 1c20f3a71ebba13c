import { isAbsolute, join } from 'node:path';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ResetRules } from '../lifecycle/reset-policy.ts';
import type { Store } from './port.ts';

/** Opens the store a URL names: `sqlite:<file>` (relative to the home folder) or `postgres://...`. */
export async function openStore(url: string, home: string, rules: ResetRules): Promise<Store> {
  if (url.startsWith('sqlite:')) {
    const file = url.slice('sqlite:'.length);
    if (file === '') throw new MoiraiError('store_url', `store URL "${url}" names no file`);
    const { SqliteStore } = await import('./sqlite/store.ts');
    return SqliteStore.open(isAbsolute(file) ? file : join(home, file), rules);
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { PostgresStore } = await import('./postgres/store.ts');
    return PostgresStore.open(url, rules);
  }
  throw new MoiraiError('store_url', `store URL "${url.replace(/:\/\/.*@/, '://***@')}" names no engine Moirai knows`);
}
