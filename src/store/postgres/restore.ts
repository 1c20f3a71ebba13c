import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type pg from 'pg';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { copyToDraft, discard, type Progress } from '../backup/backup-file.ts';
import type { RestoreRequest } from '../backup/restore.ts';
import { type StoreTable, tablesOf } from '../backup/tables.ts';
import { migrate } from '../migrations/migrations.ts';
import { SqliteConnection } from '../sqlite/connection.ts';
import { sqliteCode } from '../sqlite/errors.ts';
import type { Row } from '../transaction.ts';
import { settleRestored } from '../transactions/restoring.ts';
import { assertSafe, connectForBackup, SCHEMA, shownUrl } from './connection.ts';
import { postgresDialect } from './dialect.ts';
import { wrapPostgres } from './errors.ts';
import { runBatch } from './pipeline.ts';
import { commit, runOn } from './transact.ts';

/** At most so many rows, and about so much text, travel in one statement. */
const MOST_ROWS = 500;
const BATCH_CHARS = 4 << 20;

/** Puts a backup in the place of a server's store, in one transaction. Returns the schema that holds the old one. */
export async function replacePostgres(request: RestoreRequest): Promise<string | null> {
  // In this program's schema, whatever that of the backup is.
  const draft = copyToDraft(request.file, join(tmpdir(), basename(request.file)));
  let client: pg.Client | null = null;
  try {
    SqliteConnection.openWriter(draft).close();
    client = await connectForBackup(request.place);
    await assertSafe(client);
    const db = new DatabaseSync(draft, { readOnly: true });
    try {
      return await load(client, db, request);
    } finally {
      db.close();
    }
  } catch (thrown) {
    throw sqliteCode(thrown) === undefined ? wrapPostgres(thrown, shownUrl(request.place)) : thrown;
  } finally {
    await client?.end();
    discard(draft);
  }
}

async function load(client: pg.Client, db: DatabaseSync, request: RestoreRequest): Promise<string | null> {
  await client.query('BEGIN');
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended('moirai:migrate', 2))");
  const kept = await keepAside(client, `${SCHEMA}_before_restore_${request.suffix}`);
  await client.query(`CREATE SCHEMA ${SCHEMA}`);
  const { unsent } = await runOn(client, migrate(postgresDialect));
  await runBatch(client, unsent);
  await loadRows(client, db, request.progress);
  await commit(client, await runOn(client, settleRestored(request.now)));
  return kept;
}

/** Gives the schema that is there another name; the new one takes its place when this is committed. */
async function keepAside(client: pg.Client, aside: string): Promise<string | null> {
  const { rows } = await client.query<Row>(`SELECT to_regclass('${SCHEMA}.instances') IS NOT NULL AS there`);
  if (!rows[0]?.there) {
    await client.query(`DROP SCHEMA IF EXISTS ${SCHEMA}`);
    return null;
  }
  // Whoever boots now waits for the end of this, and finds the new store.
  await client.query(`LOCK TABLE ${SCHEMA}.instances IN ACCESS EXCLUSIVE MODE`);
  const live = await client.query<Row>(
    `SELECT id FROM ${SCHEMA}.instances
     WHERE state = 'up' AND lease_until > floor(extract(epoch FROM clock_timestamp()) * 1000)`,
  );
  if (live.rows.length > 0) throw new MoiraiError('store_in_use', `instance ${live.rows[0]?.id} uses the store`);
  await client.query(`ALTER SCHEMA ${SCHEMA} RENAME TO "${aside}"`);
  return aside;
}

async function loadRows(client: pg.Client, db: DatabaseSync, progress: Progress): Promise<void> {
  const tables = tablesOf(db);
  const count = ({ name }: StoreTable): number => Number(db.prepare(`SELECT count(*) AS n FROM ${name}`).get()?.n);
  const total = tables.reduce((sum, table) => sum + count(table), 0);
  let done = 0;
  for (const table of tables) {
    const insert = await insertFor(client, table);
    for (const rows of batchesOf(db, table)) {
      await client.query(insert, [JSON.stringify(rows)]);
      done += rows.length;
      progress(done, total);
    }
    if (table.numbered) await goOnNumbering(client, table.name);
  }
  await client.query("SELECT setval('event_seq', (SELECT max(seq) FROM events))");
}

/** Inserts rows that come as one JSON array. The schema's version is there already, from making it. */
async function insertFor(client: pg.Client, { name, columns, numbered }: StoreTable): Promise<string> {
  const { rows } = await client.query<Row>(
    'SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2',
    [SCHEMA, name],
  );
  const types = new Map(rows.map((row) => [row.column_name, row.data_type]));
  const typed = columns.map((column) => `${column} ${types.get(column)}`);
  const fresh = `json_to_recordset($1::json) AS fresh (${typed.join(', ')})`;
  const names = columns.join(', ');
  const own = numbered ? 'OVERRIDING SYSTEM VALUE' : '';
  // The public number of an event in the backup is its only one.
  if (name === 'events') return `INSERT INTO events (${names}, seq) ${own} SELECT ${names}, no FROM ${fresh}`;
  const rest = name === 'meta' ? 'ON CONFLICT (name) DO NOTHING' : '';
  return `INSERT INTO ${name} (${names}) ${own} SELECT ${names} FROM ${fresh} ${rest}`;
}

function* batchesOf(db: DatabaseSync, { name, columns, numbered }: StoreTable): Generator<unknown[]> {
  const order = numbered ? 'ORDER BY no' : '';
  let batch: unknown[] = [];
  let size = 0;
  for (const row of db.prepare(`SELECT ${columns.join(', ')} FROM ${name} ${order}`).iterate()) {
    batch.push(row);
    for (const value of Object.values(row)) size += typeof value === 'string' ? value.length : 8;
    if (batch.length < MOST_ROWS && size < BATCH_CHARS) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}

async function goOnNumbering(client: pg.Client, table: string): Promise<void> {
  await client.query(
    `SELECT setval(pg_get_serial_sequence('${SCHEMA}.${table}', 'no'), (SELECT max(no) FROM ${table}))`,
  );
}
