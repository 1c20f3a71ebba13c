import pg from 'pg';
import type { ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';

/** The connection broke, was never made, or did not answer in time: whatever the system calls it, the server said nothing. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** What the driver reports: the server's own word, or a lost connection. */
export function fromDriver(thrown: unknown): pg.DatabaseError | ConnectionLost {
  if (thrown instanceof pg.DatabaseError || thrown instanceof ConnectionLost) return thrown;
  return new ConnectionLost(reasonOf(thrown), { cause: thrown });
}

function reasonOf(thrown: unknown): string {
  if (thrown instanceof AggregateError) return reasonOf(thrown.errors[0]);
  return thrown instanceof Error ? thrown.message || String((thrown as NodeJS.ErrnoException).code) : String(thrown);
}

/** Serialization failure, deadlock, a lock that was not free in time: the transaction is undone and may be tried again. */
const CONFLICTS = /^(40(?!003)|55P03)/;
/**
 * The server ends the connection or refuses one, or something between us and it does (poolers report that under 08).
 * At COMMIT that is no answer.
 */
const ENDED = /^(08|57P|25P0[345]|53300)/;
/** A prepared statement that is not there any more, or that no longer fits its tables. */
const STALE_STATEMENT = /^(0A000|26000|42P05)/;
/** Tables or columns are not as this program knows them. */
const OTHER_SCHEMA = /^(0A000|42703|42704|42883|42P01|3F000)/;

/** What a SQLSTATE means for whoever asked; the first that fits. What fits none is a defect of ours. */
const CODES: readonly (readonly [state: RegExp, code: ErrorCode])[] = [
  [ENDED, 'store_unreachable'],
  [CONFLICTS, 'store_locked'],
  [/^57014/, 'store_timeout'],
  [/^53100/, 'store_full'],
  [/^25006/, 'store_read_only'],
  [/^(28|3D)/, 'store_unreachable'],
  [/^(58|XX|F0)/, 'store_io'],
  // Values the server cannot hold, and rows larger than it can index.
  [/^(22|54)/, 'bad_input'],
  [OTHER_SCHEMA, 'store_refused'],
  [/^(0L|0P|26|38|39|42501|53|55|57|HV)/, 'store_refused'],
];

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

/** What the server said, in five characters; empty when it said nothing. */
function sqlStateOf(thrown: unknown): string {
  return thrown instanceof pg.DatabaseError ? (thrown.code ?? '') : '';
}

export function wantsRetry(thrown: unknown): boolean {
  // Two conversations took the same message at once: tried again, the second finds the turn of the first.
  return CONFLICTS.test(sqlStateOf(thrown)) || brokenRule(thrown) === 'turns_once_per_message';
}

/** The connection is of no use any more. */
export function isAway(thrown: unknown): boolean {
  return thrown instanceof ConnectionLost || ENDED.test(sqlStateOf(thrown));
}

/**
 * Whether a transaction whose COMMIT was sent may have been done all the same: whenever the server did not say that it
 * was not. No list of names for broken connections is complete, so there is none.
 */
export function leavesCommitUnknown(thrown: unknown): boolean {
  const state = sqlStateOf(thrown);
  return state === '' || ENDED.test(state) || state === '40003';
}

export function isStaleStatement(thrown: unknown): boolean {
  return STALE_STATEMENT.test(sqlStateOf(thrown));
}

/** The tables are not as this program knows them: a newer one may have changed them. */
export function suggestsOtherSchema(thrown: unknown): boolean {
  return OTHER_SCHEMA.test(sqlStateOf(thrown));
}

/** A server error as one of ours; errors that are ours already pass through. */
export function wrapPostgres(thrown: unknown, location: string): MoiraiError {
  if (thrown instanceof MoiraiError) return thrown;
  const state = sqlStateOf(thrown);
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const as = (code: ErrorCode): MoiraiError =>
    new MoiraiError(code, `${location}: ${message}`, { cause: thrown, details: { location, sqlstate: state } });
  if (thrown instanceof ConnectionLost) return as('store_unreachable');
  // JSON that we wrote and cannot read any more.
  if (thrown instanceof SyntaxError) return as('store_corrupt');
  const code = BROKEN_RULES[brokenRule(thrown)] ?? CODES.find(([states]) => states.test(state))?.[1];
  return code === undefined ? MoiraiError.wrap(thrown) : as(code);
}
