import { DatabaseSync } from 'node:sqlite';
import type pg from 'pg';
import type { Progress } from '../backup/backup-file.ts';
import { type StoreTable, tablesOf } from '../backup/tables.ts';
import { SqliteConnection } from '../sqlite/connection.ts';
import { sqliteCode } from '../sqlite/errors.ts';
import type { Values } from '../transaction.ts';
import { connectForBackup, shownUrl } from './connection.ts';
import { wrapPostgres } from './errors.ts';

/** At most so many rows, and about so much text, are in memory at a time. */
const MOST_ROWS = 200;
const BATCH_CHARS = 4 << 20;

/** Copies a store that others may be writing to, as it is in one snapshot, into an SQLite file of the same schema. */
export async function copyPostgres(url: string, draft: string, progress: Progress): Promise<void> {
  SqliteConnection.openWriter(draft).close();
  const db = new DatabaseSync(draft);
  let client: pg.Client | null = null;
  try {
    // Nobody reads the draft, and it is written to the disk as a whole before it gets its name.
    db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN');
    client = await connectForBackup(url);
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const copier = new Copier(client, db, progress);
    await copier.copyAll();
    db.exec('COMMIT');
  } catch (thrown) {
    throw sqliteCode(thrown) === undefined ? wrapPostgres(thrown, shownUrl(url)) : thrown;
  } finally {
    db.close();
    await client?.end();
  }
}

/** One copy, all of it in the transactions that are open on both sides. */
class Copier {
  readonly #client: pg.Client;
  readonly #db: DatabaseSync;
  readonly #progress: Progress;
  #done = 0;
  #total = 0;

  constructor(client: pg.Client, db: DatabaseSync, progress: Progress) {
    this.#client = client;
    this.#db = db;
    this.#progress = progress;
  }

  async copyAll(): Promise<void> {
    const tables = tablesOf(this.#db).filter(({ name }) => name !== 'meta' && name !== 'events');
    for (const { name } of [...tables, { name: 'events' }]) {
      const { rows } = await this.#client.query(`SELECT count(*) AS n FROM ${name}`);
      this.#total += Number(rows[0].n);
    }
    for (const table of tables) await this.#copy(table, `SELECT ${table.columns.join(', ')} FROM ${table.name}`);
    await this.#copyMeta();
    await this.#copyEvents();
    renumberLanes(this.#db);
  }

  async #copy({ name, columns, numbered }: StoreTable, select: string): Promise<void> {
    const insert = this.#db.prepare(insertInto(name, columns));
    for await (const row of this.#read(numbered ? `${select} ORDER BY no` : select)) insert.run(...row);
  }

  /** What the store knows of itself, but for its schema, which is this program's in the copy. */
  async #copyMeta(): Promise<void> {
    const insert = this.#db.prepare('INSERT INTO meta (name, value) VALUES (?, ?)');
    for await (const row of this.#read("SELECT name, value FROM meta WHERE name <> 'schema'")) insert.run(...row);
  }

  /**
   * The public number of an event is its only one in SQLite. What has none yet in this snapshot comes after what has,
   * in the order in which it would get them.
   */
  async #copyEvents(): Promise<void> {
    const columns = ['session_id', 'session_seq', 'session_key', 'type', 'at', 'body'];
    const insert = this.#db.prepare(insertInto('events', ['no', ...columns]));
    this.#db.exec(
      `CREATE TEMP TABLE renumbered (key TEXT, old INTEGER, fresh INTEGER, PRIMARY KEY (key, old)) WITHOUT ROWID`,
    );
    const keep = this.#db.prepare('INSERT INTO renumbered (key, old, fresh) VALUES (?, ?, ?)');
    let last = 0;
    for (const rest of ['WHERE seq IS NOT NULL ORDER BY seq', 'WHERE seq IS NULL ORDER BY no']) {
      const select = `SELECT seq, no, ${columns.join(', ')} FROM events ${rest}`;
      for await (const [seq = null, old = null, ...row] of this.#read(select)) {
        last = Number(seq ?? last + 1);
        insert.run(last, ...row);
        keep.run(row[2] ?? null, old, last);
      }
    }
  }

  /** Rows one after the other; the server is asked for as many at a time as memory allows. */
  async *#read(select: string): AsyncGenerator<Values> {
    await this.#client.query(`DECLARE copied NO SCROLL CURSOR FOR ${select}`);
    let most = 1;
    for (;;) {
      const text = `FETCH ${most} FROM copied`;
      const { rows } = await this.#client.query<Values[number][]>({ text, rowMode: 'array' });
      yield* rows;
      this.#done += rows.length;
      this.#progress(this.#done, Math.max(this.#total, this.#done));
      if (rows.length < most) break;
      most = Math.max(1, Math.min(MOST_ROWS, 2 * most, Math.floor((BATCH_CHARS * rows.length) / sizeOf(rows))));
    }
    await this.#client.query('CLOSE copied');
  }
}

function sizeOf(rows: readonly Values[]): number {
  return rows.flat().reduce((sum: number, value) => sum + 8 + (typeof value === 'string' ? value.length : 0), 1);
}

function insertInto(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
}

/** What refers to events refers to them by their new numbers, which have the same order within a conversation. */
function renumberLanes(db: DatabaseSync): void {
  const of = (which: string, compared: string): string =>
    `(SELECT ${which}(fresh) FROM renumbered r WHERE r.key = lanes.key AND r.old ${compared})`;
  db.exec(`UPDATE lanes SET
      next_no = coalesce(${of('min', '>= lanes.next_no')}, ${of('max', '< lanes.next_no')} + 1, next_no),
      last_no = coalesce(${of('max', '<= lanes.last_no')}, last_no)
    WHERE queue LIKE 'events/%'`);
  db.exec(`CREATE TEMP TABLE letters AS SELECT d.*, r.fresh FROM dead_letters d
      JOIN renumbered r ON r.key = d.session_key AND r.old = d.event_no;
    DELETE FROM dead_letters;
    INSERT INTO dead_letters (subscriber, event_no, session_key, event_id, attempts, error, at, replay)
      SELECT subscriber, fresh, session_key, event_id, attempts, error, at, replay FROM letters;
    DROP TABLE letters; DROP TABLE renumbered`);
}
