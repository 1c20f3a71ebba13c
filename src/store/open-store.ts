import { isAbsolute, join } from 'node:path';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ResetRules } from '../lifecycle/reset-policy.ts';
import { machineClock } from './clock.ts';
import type { Store } from './port.ts';

export interface OpenOptions {
  /** SQLite on the caller's own thread: for a command that asks, writes and leaves, threads cost more than they give. */
  readonly inline?: boolean;
  /** Hears of what went wrong and stopped nothing. */
  readonly onProblem?: (message: string, details: Readonly<Record<string, unknown>>) => void;
}

/** Opens the store a URL names: `sqlite:<file>` (relative to the home folder) or `postgres://...`. */
export async function openStore(
  url: string,
  home: string,
  rules: ResetRules,
  options: OpenOptions = {},
): Promise<Store> {
  const { engine, place } = placeOf(url, home);
  if (engine === 'sqlite') {
    const { InlineSqliteStore, SqliteStore } = await import('./sqlite/store.ts');
    return options.inline ? new InlineSqliteStore(place, machineClock, rules) : SqliteStore.open(place, rules);
  }
  const { PostgresStore } = await import('./postgres/store.ts');
  return PostgresStore.open(place, rules, { onProblem: options.onProblem ?? (() => undefined) });
}

/** Which engine a store URL names, and where: the path of a file, or the URL itself. Throws `store_url`. */
export function placeOf(url: string, home: string): { engine: Store['engine']; place: string } {
  if (url.startsWith('sqlite:')) {
    const file = url.slice('sqlite:'.length);
    if (file === '') throw new MoiraiError('store_url', `store URL "${url}" names no file`);
    return { engine: 'sqlite', place: isAbsolute(file) ? file : join(home, file) };
  }
  if (/^postgres(ql)?:\/\//.test(url)) return { engine: 'postgres', place: url };
  throw new MoiraiError(
    'store_url',
    `store URL "${url.replace(/^([^:]*:\/\/).*@/, '$1***@')}" names no engine Moirai knows`,
  );
}
