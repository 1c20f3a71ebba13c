import type { ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';

/** SQLite's primary result codes that mean something to an operator. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  5: 'store_locked',
  6: 'store_locked',
  8: 'store_read_only',
  10: 'store_io',
  11: 'store_corrupt',
  13: 'store_full',
  14: 'store_io',
  26: 'store_not_database',
};

/** What the operating system says when a file cannot even be looked at. */
const SYSTEM_CODES: Readonly<Record<string, ErrorCode>> = {
  EACCES: 'store_read_only',
  EPERM: 'store_read_only',
  EROFS: 'store_read_only',
  ENOSPC: 'store_full',
  EDQUOT: 'store_full',
  EISDIR: 'store_not_database',
  ENOTDIR: 'store_io',
  EEXIST: 'store_io',
  ENOENT: 'store_io',
  ELOOP: 'store_io',
  EMFILE: 'store_io',
  EIO: 'store_io',
};

/** Rules of the database that say what is wrong with a request; the rest are defects of ours. */
const BROKEN_RULES: readonly (readonly [RegExp, ErrorCode])[] = [
  [/UNIQUE constraint failed: sessions\.key/, 'key_busy'],
  [/UNIQUE constraint failed: sessions\.id/, 'session_exists'],
  [/NOT NULL constraint failed: sessions\.version/, 'illegal_move'],
];

/** After these the connection's transaction is gone or in doubt: everything in it failed. */
const FATAL: ReadonlySet<ErrorCode> = new Set(['store_io', 'store_corrupt', 'store_full', 'store_not_database']);

/** The primary result code of an SQLite error, or undefined for anything else. */
export function sqliteCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !('errcode' in thrown) || typeof thrown.errcode !== 'number') return undefined;
  return thrown.errcode & 0xff;
}

function systemCode(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : '';
}

export function isBusy(thrown: unknown): boolean {
  const code = sqliteCode(thrown);
  return code === 5 || code === 6;
}

/** An engine error as one of ours; errors that are ours already pass through. */
export function wrapSqlite(thrown: unknown, path: string): MoiraiError {
  if (thrown instanceof MoiraiError) return thrown;
  const code = sqliteCode(thrown);
  const known = code === undefined ? SYSTEM_CODES[systemCode(thrown)] : CODES[code];
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const rule = BROKEN_RULES.find(([pattern]) => pattern.test(message));
  if (rule !== undefined) return new MoiraiError(rule[1], message, { cause: thrown });
  if (known === undefined && isDamage(thrown)) {
    return new MoiraiError('store_corrupt', `${path}: ${message}`, { cause: thrown, details: { path } });
  }
  if (known === undefined) return MoiraiError.wrap(thrown);
  return new MoiraiError(known, `${path}: ${message}`, { cause: thrown, details: { path } });
}

/**
 * What SQLite says of tables that are not as we made them, and of a row that has lost a value, without calling it damage:
 * what we write ourselves is typed, so that a null can only come out of the file.
 */
const DAMAGED =
  /^(NOT NULL constraint failed|vtable constructor failed|no such (table|column)|table \w+ (has no column|already exists))/;

/** True for JSON and tables that we wrote and cannot read any more: something else has written here. */
function isDamage(thrown: unknown): boolean {
  return thrown instanceof SyntaxError || (thrown instanceof Error && DAMAGED.test(thrown.message));
}

/** Only what the engine itself reports: a row that cannot be understood leaves the transaction as it is. */
export function endsTransaction(error: MoiraiError): boolean {
  return FATAL.has(error.code) && sqliteCode(error.cause) !== undefined;
}
