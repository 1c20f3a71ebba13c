import type { ResetRules } from '../lifecycle/reset-policy.ts';
import type { Dialect } from './dialect.ts';

export type Param = string | number | null;
export type Row = Record<string, string | number | null>;

export interface Query {
  readonly sql: string;
  readonly params: readonly Param[];
  /** Rows unless said otherwise. A statement's text is always used in the same way. */
  readonly returns?: Returning;
  /** Every write asks it, and hardly any changes the answer: requests that share a commit may share the answer. */
  readonly cacheable?: true;
}

/** What a statement selects or returns, if anything: rows with names, or as `Values`. */
export type Returning = 'rows' | 'values';

/** A row without names, in the order of its columns: the names of a wide row cost more than what they name. */
export type Values = readonly Param[];

/**
 * A transaction, written once for both engines: it yields statements and receives their rows. SQLite runs it to the
 * end synchronously, PostgreSQL awaits each yield. Neither knows what it does.
 *
 * Statements yielded together run in their order, each seeing what the ones before it did and what others committed
 * meanwhile; they cost one round trip. Statements that all have no answer cost none: they travel with the next ones that
 * have one, or with the commit. So a change must not depend on how many rows it met.
 */
export type Tx<T> = Generator<readonly Query[], T, readonly Row[][]>;

/** Whether a statement has an answer: one that only changes rows has none. */
export function hasAnswer(sql: string): boolean {
  return /^\s*(SELECT|WITH|PRAGMA)\b|\bRETURNING\b/i.test(sql);
}

/** Statements, and what their rows mean. */
export interface Ask<T> {
  readonly queries: readonly Query[];
  read(rows: readonly Row[][]): T;
}

/** What the rest of the process should look at once the transaction is durable. Hints only, never the truth. */
export interface Effects {
  /** Queues with something to do. */
  readonly queues: Set<string>;
  /** The earliest deadline written. */
  nextDeadline: number | null;
}

export interface TxContext {
  readonly dialect: Dialect;
  /** The store's wall clock, epoch milliseconds. */
  readonly now: number;
  /** The clock that leases are timed by: never a host's own idea of the time. */
  readonly leaseNow: number;
  readonly rules: ResetRules;
  readonly effects: Effects;
}

export function noEffects(): Effects {
  return { queues: new Set(), nextDeadline: null };
}

/** Runs one statement. */
export function* query(sql: string, ...params: Param[]): Tx<Row[]> {
  const [rows = []] = yield [{ sql, params }];
  return rows;
}

/** Asks several things in one round trip. */
export function* batch<A extends readonly Ask<unknown>[]>(
  ...asks: A
): Tx<{ [I in keyof A]: A[I] extends Ask<infer T> ? T : never }> {
  const rows = yield asks.flatMap((ask) => ask.queries);
  let read = 0;
  const answers = asks.map((ask) => {
    const from = read;
    read += ask.queries.length;
    return ask.read(rows.slice(from, read));
  });
  return answers as { [I in keyof A]: A[I] extends Ask<infer T> ? T : never };
}

/**
 * Remembers texts by what they depend on. Connections know a statement by its text, and a text that is made anew each
 * time has to be read from end to end to be recognised.
 */
export function remembered<K>(make: (key: K) => string): (key: K) => string {
  const made = new Map<K, string>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    const text = make(key);
    if (made.size >= MAX_REMEMBERED) made.clear();
    made.set(key, text);
    return text;
  };
}

const MAX_REMEMBERED = 100;

/** `?, ?, ?` */
export function placeholders(count: number): string {
  return repeated('?', count);
}

/** A part of a statement, so many times, with commas between. */
export function repeated(part: string, count: number): string {
  return Array.from({ length: count }, () => part).join(', ');
}
