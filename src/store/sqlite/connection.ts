import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, readSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { assertNotNewer, migrate, SCHEMA_VERSION } from '../migrations/migrations.ts';
import { makePrivate } from '../private-file.ts';
import { hasAnswer, type Query, type Returning, type Row, type Tx } from '../transaction.ts';
import { type FileMarks, marksOf } from './database-file.ts';
import { sqliteDialect } from './dialect.ts';
import { wrapSqlite } from './errors.ts';
import { assertLocalFileSystem } from './file-system.ts';
import { retryWhileBusy } from './turnstile.ts';

/** Before this version a WAL could lose its tail when it was reset. */
const MIN_SQLITE = [3, 51, 3] as const;
/** "MOIR": tells our files from other programs' databases. */
const APPLICATION_ID = 0x4d4f4952;
const MAGIC = 'SQLite format 3\0';

type Prepared = (params: Query['params']) => Row[];

/** One connection with its prepared statements. Runs transactions to their end without ever waiting. */
export class SqliteConnection {
  readonly path: string;
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, Prepared>();
  /** Answers to standing queries, for as long as a commit. */
  readonly #cached = new Map<string, Row[]>();
  #wrote = false;
  #synced = true;

  private constructor(db: DatabaseSync, path: string) {
    this.#db = db;
    this.path = path;
  }

  /** Opens the file for writing: checks what it is, that it is safe, and brings its schema up to date. */
  static openWriter(path: string): SqliteConnection {
    return guarded(path, () => {
      assertUsable(path);
      makePrivate(path);
      const db = new DatabaseSync(path, { timeout: 0 });
      try {
        const connection = new SqliteConnection(db, path);
        retryWhileBusy(() => assertOurs(db, path));
        // A newer store is refused before anything in it is touched.
        retryWhileBusy(() => connection.#schemaVersion());
        retryWhileBusy(() => makeDurable(db, path));
        retryWhileBusy(() => connection.#migrate());
        return connection;
      } catch (thrown) {
        db.close();
        throw thrown;
      }
    });
  }

  /** Opens the file for reading beside a writer. */
  static openReader(path: string, waitMs: number): SqliteConnection {
    return guarded(path, () => {
      const db = new DatabaseSync(path, { readOnly: true, timeout: waitMs });
      db.exec('PRAGMA query_only = 1');
      return new SqliteConnection(db, path);
    });
  }

  /** Runs a transaction's statements, one after the other, inside whatever transaction is open. */
  run<T>(tx: Tx<T>): T {
    this.#wrote = false;
    let step = tx.next();
    while (!step.done) step = tx.next(step.value.map((query) => this.#execute(query)));
    return step.value;
  }

  /** Runs a statement that has no parameters and gives no rows. */
  exec(sql: string): void {
    this.#cached.clear();
    this.#execute({ sql, params: [] });
  }

  /** What tells this file from copies of it, as the open transaction sees it, if there is one. */
  get marks(): FileMarks {
    return marksOf(this.#db);
  }

  set heartbeats(count: number) {
    this.#db.exec(`PRAGMA user_version = ${count}`);
  }

  /** Changes when another connection commits. */
  get othersCommits(): number {
    const [row] = this.#execute({ sql: 'PRAGMA data_version', params: [] });
    return Number(row?.data_version);
  }

  /** Takes everything from the log into the file and empties it; false when somebody is in the way. */
  emptyLog(): boolean {
    return pragma(this.#db, 'wal_checkpoint(TRUNCATE)') === '0';
  }

  /** Whether commits wait for the disk from now on. One that does takes along all that came before it. */
  set synced(synced: boolean) {
    if (synced === this.#synced) return;
    this.exec(synced ? 'PRAGMA synchronous = FULL' : 'PRAGMA synchronous = NORMAL');
    this.#synced = synced;
  }

  /** Whether the last transaction that was run changed anything, or tried to. */
  get wrote(): boolean {
    return this.#wrote;
  }

  /** False when an error has already undone the open transaction. */
  get inTransaction(): boolean {
    return this.#db.isTransaction;
  }

  close(): void {
    this.#db.close();
  }

  #execute(query: Query): Row[] {
    return query.cacheable ? this.#recall(query) : this.#ask(query);
  }

  #recall(query: Query): Row[] {
    const id = `${query.params.join()} ${query.sql}`;
    const rows = this.#cached.get(id) ?? this.#ask(query);
    this.#cached.set(id, rows);
    return rows;
  }

  #ask(query: Query): Row[] {
    const known = this.#statements.get(query.sql) ?? this.#prepare(query);
    return known(query.params);
  }

  #prepare(query: Query): Prepared {
    const { sql } = query;
    const reads = /^\s*(SELECT|PRAGMA)\b/i.test(sql);
    const returns = query.returns ?? (hasAnswer(sql) ? 'rows' : 'nothing');
    const run = RUNNERS[returns](this.#db.prepare(withoutPeeking(sql)));
    const unsettles = !reads && STANDING_TABLES.test(sql);
    const prepared: Prepared = (params) => {
      if (!reads) this.#wrote = true;
      if (unsettles) this.#cached.clear();
      return run(params);
    };
    this.#statements.set(sql, prepared);
    return prepared;
  }

  #migrate(): void {
    if (this.#schemaVersion() === SCHEMA_VERSION) return;
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      this.run(migrate(sqliteDialect));
      this.#db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
      this.#db.exec('COMMIT');
    } catch (thrown) {
      if (this.inTransaction) this.#db.exec('ROLLBACK');
      throw thrown;
    }
  }

  #schemaVersion(): number {
    const table = this.#db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'").get();
    if (table === undefined) return 0;
    const row = this.#db.prepare("SELECT value FROM meta WHERE name = 'schema'").get();
    const version = row === undefined ? 0 : Number(row.value);
    assertNotNewer(version);
    return version;
  }
}

/**
 * SQLite plans a statement by the value of a `LIMIT ?`, and so plans it anew each time it is run with another one bound,
 * which takes longer than the statement. A sum it does not look into.
 */
function withoutPeeking(sql: string): string {
  return sql.replace(/\bLIMIT \?/g, 'LIMIT ? + 0');
}

/** What standing queries read. */
const STANDING_TABLES = /\b(instances|subscribers)\b/;

/** How to run a statement, by what it gives. */
const RUNNERS: Readonly<Record<Returning | 'nothing', (statement: StatementSync) => Prepared>> = {
  rows: (statement) => (params) => statement.all(...params) as Row[],
  values: (statement) => {
    statement.setReturnArrays(true);
    return (params) => statement.all(...params) as Row[];
  },
  nothing: (statement) => (params) => {
    statement.run(...params);
    return [];
  },
};

function guarded<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (thrown) {
    throw wrapSqlite(thrown, path);
  }
}

function assertUsable(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  assertLocalFileSystem(path);
  // SQLite makes more files beside the database; of a folder it may not write to it says only that it cannot open them.
  accessSync(dirname(path), constants.W_OK | constants.X_OK);
  if (!existsSync(path)) return;
  accessSync(path, constants.R_OK | constants.W_OK);
  if (statSync(path).size === 0) return;
  const head = Buffer.alloc(MAGIC.length);
  const file = openSync(path, 'r');
  try {
    readSync(file, head, 0, head.length, 0);
  } finally {
    closeSync(file);
  }
  if (head.toString('latin1') !== MAGIC)
    throw new MoiraiError('store_not_database', `${path} is not an SQLite database`);
}

function assertOurs(db: DatabaseSync, path: string): void {
  assertVersion(db);
  const objects = Number(pragma(db, 'schema_version'));
  const application = Number(pragma(db, 'application_id'));
  if (objects > 0 && application !== APPLICATION_ID) {
    throw new MoiraiError('store_not_database', `${path} is a database of another program`);
  }
}

/** Sets what durability depends on and reads it back: a setting that did not take is worse than none. */
function makeDurable(db: DatabaseSync, path: string): void {
  const mode = pragma(db, 'journal_mode = WAL');
  db.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1');
  db.exec(
    'PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 4000',
  );
  // What was deleted is not in the file any longer.
  db.exec('PRAGMA secure_delete = ON');
  const synchronous = Number(pragma(db, 'synchronous'));
  if (mode === 'wal' && synchronous === 2) return;
  throw new MoiraiError(
    'store_unsafe',
    `${path}: journal_mode is ${mode} and synchronous is ${synchronous}; wal and 2 (FULL) are needed`,
  );
}

function assertVersion(db: DatabaseSync): void {
  const version = String(db.prepare('SELECT sqlite_version() AS version').get()?.version);
  const parts = version.split('.').map(Number);
  // By hand: a comparison by locale would load collation data, 3 MB that stay.
  const differs = MIN_SQLITE.findIndex((least, i) => parts[i] !== least);
  if (differs === -1 || (parts[differs] ?? 0) > (MIN_SQLITE[differs] ?? 0)) return;
  throw new MoiraiError('store_unsafe', `SQLite ${version} is older than ${MIN_SQLITE.join('.')}`);
}

function pragma(db: DatabaseSync, text: string): string {
  const row = db.prepare(`PRAGMA ${text}`).get() ?? {};
  return String(Object.values(row)[0]);
}
