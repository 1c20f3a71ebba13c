import type { Param, Query, Row, Tx, Values } from './transaction.ts';

/** How one value is kept in a column: as the engine has it, and as the program sees it. */
export interface Column<T> {
  encode(value: T): Param;
  decode(param: Param): T;
}

function plain<T extends Param>(): Column<T> {
  return { encode: (value) => value, decode: (param) => param as T };
}

export const text: Column<string> = plain();
export const integer: Column<number> = plain();
export const nullableText: Column<string | null> = plain();
export const nullableInteger: Column<number | null> = plain();
/** Kept as 0 or 1. */
export const flag: Column<boolean> = { encode: (value) => (value ? 1 : 0), decode: (param) => param === 1 };

/** One of a closed list of words. */
export function word<T extends string>(): Column<T> {
  return plain<T>();
}

export function nullableWord<T extends string>(): Column<T | null> {
  return plain<T | null>();
}

/** A value kept as JSON. */
export function json<T>(): Column<T> {
  return { encode: (value) => JSON.stringify(value), decode: (param) => JSON.parse(String(param)) as T };
}

export function nullableJson<T>(): Column<T | null> {
  return {
    encode: (value) => (value === null ? null : JSON.stringify(value)),
    decode: (param) => (param === null ? null : (JSON.parse(String(param)) as T)),
  };
}

type Columns = Readonly<Record<string, Column<unknown>>>;

/** The row that a declaration of columns describes. */
export type RowOf<T> =
  T extends Table<infer C> ? { readonly [F in keyof C]: C[F] extends Column<infer V> ? V : never } : never;

/**
 * One declaration of a table's columns, from which the type of its rows, its selections and its insertions follow. A
 * field `sessionKey` is the column `session_key`. Rows are read by position: names of a wide row cost more than its
 * values.
 */
export class Table<C extends Columns> {
  readonly name: string;
  readonly fields: readonly (keyof C & string)[];
  /** `id, session_key, ...`, in the order of `read`. */
  readonly list: string;
  readonly #columns: readonly Column<unknown>[];

  constructor(name: string, columns: C) {
    this.name = name;
    this.fields = Object.keys(columns);
    this.list = this.listOf('');
    this.#columns = Object.values(columns);
  }

  /** The same list with a table's alias before each name. */
  listOf(alias: string): string {
    const prefix = alias === '' ? '' : `${alias}.`;
    return this.fields.map((field) => prefix + columnName(field)).join(', ');
  }

  /** The statement `SELECT <columns> FROM <table> <rest>`. */
  query(rest: string, ...params: Param[]): Query {
    return this.queryAs(`SELECT ${this.list} FROM ${this.name} ${rest}`, params);
  }

  /** Any statement that returns this table's columns in their order. */
  queryAs(sql: string, params: readonly Param[]): Query {
    return { sql, params, returns: 'values' };
  }

  /** Runs `query`. */
  *select(rest: string, ...params: Param[]): Tx<RowOf<Table<C>>[]> {
    const [rows = []] = yield [this.query(rest, ...params)];
    return this.rows(rows);
  }

  /** Runs `query`, for at most one row. */
  *selectOne(rest: string, ...params: Param[]): Tx<RowOf<Table<C>> | undefined> {
    return (yield* this.select(rest, ...params))[0];
  }

  /** The answer to `query` or `queryAs`. */
  rows(answer: readonly Row[]): RowOf<Table<C>>[] {
    return (answer as unknown as readonly Values[]).map((values) => this.read(values));
  }

  read(values: Values): RowOf<Table<C>> {
    const row: Record<string, unknown> = {};
    for (let i = 0; i < this.fields.length; i++) {
      row[this.fields[i] as string] = this.#columns[i]?.decode(values[i] ?? null);
    }
    return row as RowOf<Table<C>>;
  }

  /** The parameters of a row, in the order of `list`. */
  params(row: RowOf<Table<C>>): Param[] {
    const values = row as Readonly<Record<string, unknown>>;
    return this.fields.map((field, i) => this.#columns[i]?.encode(values[field]) ?? null);
  }

  /** The parameter of one field. */
  param<F extends keyof RowOf<Table<C>> & string>(field: F, value: RowOf<Table<C>>[F]): Param {
    return this.#columns[this.fields.indexOf(field)]?.encode(value) ?? null;
  }

  /** `INSERT INTO <table> (<columns>) VALUES (?, ...)`, followed by `rest`. */
  insert(row: RowOf<Table<C>>, rest = ''): Query {
    const marks = this.fields.map(() => '?').join(', ');
    return { sql: `INSERT INTO ${this.name} (${this.list}) VALUES (${marks}) ${rest}`, params: this.params(row) };
  }
}

/** The column of a field: `sessionKey` is `session_key`. */
export function columnName(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
