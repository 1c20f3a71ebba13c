import pg from 'pg';
import { hasAnswer, type Param, type Query, type Returning, type Row, type Values } from '../transaction.ts';
import { fromDriver } from './errors.ts';

/** A statement in PostgreSQL's spelling, with a name under which each connection prepares it once. */
interface Statement {
  readonly name: string;
  readonly text: string;
  readonly hasAnswer: boolean;
}

interface Column {
  readonly name: string;
  readonly parse: (value: string | null) => Param;
}

/** A statement of a batch on its way: its columns are known once the server has described them. */
interface Step extends Statement {
  readonly values: (string | null)[];
  readonly returns: Returning;
  columns: readonly Column[] | undefined;
  readonly rows: Row[];
}

const statements = new Map<string, Statement>();
/** What each connection has prepared, by name. */
let prepared = new WeakMap<pg.Connection, Map<string, readonly Column[]>>();

/**
 * Prepares every statement anew, on every connection, before it is used again. A table that has changed spoils what was
 * prepared on all of them: found out one by one, each connection would refuse a transaction.
 */
export function forgetPrepared(): void {
  prepared = new WeakMap();
}

const { BOOL, INT2, INT4, INT8, NUMERIC } = pg.types.builtins;
const NUMBERS: ReadonlySet<number> = new Set([INT2, INT4, INT8, NUMERIC]);

/** Whether any of the statements has an answer to wait for. */
export function haveAnswer(queries: readonly Query[]): boolean {
  return queries.some(({ sql }) => statementFor(sql).hasAnswer);
}

/** Runs statements in order, in one round trip; the first that fails ends the batch. */
export function runBatch(client: pg.ClientBase, queries: readonly Query[]): Promise<Row[][]> {
  if (queries.length === 0) return Promise.resolve([]);
  return new Promise((done, failed) => {
    client.query(new Batch(queries, done, failed));
  });
}

/**
 * Several statements behind one Sync: the driver by itself would wait for each answer before it sends the next
 * statement. Each still has a snapshot of its own, taken when it runs.
 */
class Batch implements pg.Submittable {
  readonly #steps: readonly Step[];
  readonly #done: (rows: Row[][]) => void;
  readonly #failed: (error: Error) => void;
  #at = 0;

  constructor(queries: readonly Query[], done: (rows: Row[][]) => void, failed: (error: Error) => void) {
    this.#steps = queries.map(({ sql, params, returns = 'rows' }) => ({
      ...statementFor(sql),
      values: params.map(toWire),
      returns,
      columns: undefined,
      rows: [],
    }));
    this.#done = done;
    this.#failed = failed;
  }

  submit(connection: pg.Connection): void {
    const known = preparedOn(connection);
    connection.stream.cork();
    for (const step of this.#steps) {
      const { name, text, values } = step;
      step.columns = known.get(name);
      if (step.columns === undefined) {
        // After a failed batch nobody knows how far it came; closing what is not there is no error.
        connection.close({ type: 'S', name }, true);
        connection.parse({ name, text, types: [] }, true);
      }
      connection.bind({ statement: name, values }, true);
      if (step.columns === undefined) connection.describe({ type: 'P', name: '' }, true);
      connection.execute(null, true);
    }
    connection.sync();
    connection.stream.uncork();
  }

  handleRowDescription({ fields }: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#step().columns = fields.map(({ name, dataTypeID }) => ({ name, parse: parserOf(dataTypeID) }));
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const { columns = [], rows, returns } = this.#step();
    const values = columns.map(({ parse }, i) => parse(fields[i] ?? null));
    rows.push(returns === 'values' ? (values as unknown as Row) : named(columns, values));
  }

  handleCommandComplete(): void {
    this.#at++;
  }

  handleReadyForQuery(connection: pg.Connection): void {
    const known = preparedOn(connection);
    for (const { name, columns } of this.#steps) known.set(name, columns ?? []);
    this.#done(this.#steps.map(({ rows }) => rows));
  }

  handleError(error: Error): void {
    this.#failed(fromDriver(error));
  }

  #step(): Step {
    const step = this.#steps[this.#at];
    if (step === undefined) throw new TypeError('the server answered more statements than were sent');
    return step;
  }
}

function statementFor(sql: string): Statement {
  const known = statements.get(sql);
  if (known !== undefined) return known;
  let n = 0;
  const text = sql.replace(/\?/g, () => `$${++n}`);
  const made = { name: `moirai_${statements.size + 1}`, text, hasAnswer: hasAnswer(sql) };
  statements.set(sql, made);
  return made;
}

function preparedOn(connection: pg.Connection): Map<string, readonly Column[]> {
  const known = prepared.get(connection) ?? new Map<string, readonly Column[]>();
  prepared.set(connection, known);
  return known;
}

function toWire(value: string | number | null): string | null {
  return typeof value === 'number' ? String(value) : value;
}

function named(columns: readonly Column[], values: Values): Row {
  const row: Row = {};
  for (const [i, { name }] of columns.entries()) row[name] = values[i] ?? null;
  return row;
}

/** 64-bit integers as numbers: ours are counts and milliseconds, far below 2^53. */
function parserOf(type: number): Column['parse'] {
  if (NUMBERS.has(type)) return (value) => (value === null ? null : Number(value));
  if (type === BOOL) return (value) => (value === null ? null : value === 't' ? 1 : 0);
  return (value) => value;
}
