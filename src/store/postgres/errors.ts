import pg from 'pg';
import type { ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';

/** Serialization failure and deadlock: the server undid the transaction and asks to try again. */
const RETRY = new Set(['40001', '40P01', '55P03']);
/** The server went away, is starting, or ended our connection. */
const AWAY = new Set([
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '25P03',
  '25P04',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
]);

/** Rules of the database that say what is wrong with a request; the rest are defects of ours. */
const BROKEN_RULES: Readonly<Record<string, ErrorCode>> = {
  sessions_one_open_per_key: 'key_busy',
  sessions_pkey: 'session_exists',
  'sessions.version': 'illegal_move',
};

/** The unique index, or the column that is never null, that a row would have broken; empty for any other error. */
function brokenRule(thrown: unknown): string {
  if (!(thrown instanceof pg.DatabaseError)) return '';
  if (thrown.code === '23502') return `${thrown.table}.${thrown.column}`;
  return thrown.code === '23505' ? (thrown.constraint ?? '') : '';
}

function codeOf(thrown: unknown): string {
  if (thrown instanceof AggregateError) return codeOf(thrown.errors[0]);
  if (!(thrown instanceof Error) || !('code' in thrown)) return '';
  return String(thrown.code);
}

export function wantsRetry(thrown: unknown): boolean {
  // Two conversations took the same message at once: tried again, the second finds the turn of the first.
  return RETRY.has(codeOf(thrown)) || brokenRule(thrown) === 'turns_once_per_message';
}

/** True when the connection is gone: what was asked of it last may or may not have happened. */
export function isAway(thrown: unknown): boolean {
  const code = codeOf(thrown);
  if (AWAY.has(code) || code.startsWith('08')) return true;
  // The driver has no code for a socket that ended in the middle of a query.
  return (
    thrown instanceof Error &&
    /Connection terminated|connection timeout|not queryable|Client has encountered/i.test(thrown.message)
  );
}

/** A server error as one of ours; errors that are ours already pass through. */
export function wrapPostgres(thrown: unknown, location: string): MoiraiError {
  if (thrown instanceof MoiraiError) return thrown;
  const code = codeOf(thrown);
  const message = thrown instanceof Error ? thrown.message || code : String(thrown);
  const details = { location, sqlstate: code };
  const as = (ours: ErrorCode): MoiraiError =>
    new MoiraiError(ours, `${location}: ${message}`, { cause: thrown, details });
  if (isAway(thrown)) return as('store_unreachable');
  if (code === '53100') return as('store_full');
  if (code === '25006') return as('store_read_only');
  if (code.startsWith('28') || code === '3D000') return as('store_unreachable');
  if (code === '58030' || code.startsWith('XX')) return as('store_io');
  if (RETRY.has(code)) return as('store_locked');
  const rule = BROKEN_RULES[brokenRule(thrown)];
  if (rule !== undefined) return as(rule);
  // Values the server cannot hold, and rows larger than it can index.
  if (code.startsWith('22') || code.startsWith('54')) return as('bad_input');
  // JSON that we wrote and cannot read any more.
  if (thrown instanceof SyntaxError) return as('store_corrupt');
  return MoiraiError.wrap(thrown);
}
