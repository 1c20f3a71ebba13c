import { isAbsolute, join } from 'node:path';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ResetRules } from '../lifecycle/reset-policy.ts';
import { machineClock } from './clock.ts';
import type { Store } from './port.ts';

export interface OpenOptions {
  /** SQLite on the caller's own thread: for a command that asks, writes and leaves, threads cost more than they give. */
  readonly inline?: boolean;
}

/** Opens the store a URL names: `sqlite:<file>` (relative to the home folder) or `postgres://...`. */
export async function openStore(
  url: string,
  home: string,
  rules: ResetRules,
  options: OpenOptions = {},
): Promise<Store> {
  if (url.startsWith('sqlite:')) {
    const file = url.slice('sqlite:'.length);
    if (file === '') throw new MoiraiError('store_url', `store URL "${url}" names no file`);
    const path = isAbsolute(file) ? file : join(home, file);
    const { InlineSqliteStore, SqliteStore } = await import('./sqlite/store.ts');
    return options.inline ? new InlineSqliteStore(path, machineClock, rules) : SqliteStore.open(path, rules);
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { PostgresStore } = await import('./postgres/store.ts');
    return PostgresStore.open(url, rules);
  }
  throw new MoiraiError('store_url', `store URL "${url.replace(/:\/\/.*@/, '://***@')}" names no engine Moirai knows`);
}
