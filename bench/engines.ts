import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { DEFAULT_RESET_RULES } from '../src/lifecycle/reset-policy.ts';
import { openStore } from '../src/store/open-store.ts';
import type { Store } from '../src/store/port.ts';
import { createDatabase, startPostgres } from '../test/support/postgres.ts';
import { type Filler, type Filling, fill } from './fill.ts';
import { boot, type Rate, rateOf } from './load.ts';

/** A filled store and where it is. */
export interface Filled {
  readonly url: string;
  readonly store: Store;
}

/** An engine under test, and the same engine bare, on the same disk. */
export interface BenchEngine {
  readonly name: 'sqlite' | 'postgres';
  /** Makes a store and fills it. */
  fill(filling: Filling, progress: (done: number) => void): Promise<Filled>;
  /** Bare durable transactions by one client: the least a transition can be, one row changed and one event written. */
  raw(ms: number): Promise<Rate>;
  close(): Promise<void>;
}

export type EngineName = BenchEngine['name'];

export function startEngine(name: EngineName): Promise<BenchEngine> {
  return name === 'sqlite' ? startSqlite() : startServer();
}

const RAW_ROWS = 10_000;
const RAW_TEXT = 'x'.repeat(250);
/** The least a transition can be: a row with its version, and an event. */
const RAW_TABLES = [
  'CREATE TABLE raw_sessions (id INTEGER PRIMARY KEY, state TEXT, version BIGINT)',
  'CREATE TABLE raw_events (session_id BIGINT, body TEXT)',
];
const randomRow = (): number => 1 + Math.floor(Math.random() * RAW_ROWS);
const FOLDER = join(import.meta.dirname, '..', '.bench');

async function startSqlite(): Promise<BenchEngine> {
  await mkdir(FOLDER, { recursive: true });
  const home = await mkdtemp(join(FOLDER, 'sqlite-'));
  const stores: Store[] = [];
  const rawDatabase = new DatabaseSync(join(home, 'raw.db'));
  rawDatabase.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${RAW_TABLES.join('; ')}`);
  await sqliteFiller(rawDatabase).run(
    `INSERT INTO raw_sessions SELECT n, 'active', 1 FROM ${sqliteFiller(rawDatabase).numbers(1, RAW_ROWS)}`,
  );
  const [begin, commit] = [rawDatabase.prepare('BEGIN IMMEDIATE'), rawDatabase.prepare('COMMIT')];
  const update = rawDatabase.prepare('UPDATE raw_sessions SET version = version + 1 WHERE id = ? RETURNING version');
  const insert = rawDatabase.prepare('INSERT INTO raw_events VALUES (?, ?)');
  return {
    name: 'sqlite',
    async fill(filling, progress) {
      const file = join(home, `${stores.length}.db`);
      await (await openStore(`sqlite:${file}`, '', DEFAULT_RESET_RULES)).close();
      const database = new DatabaseSync(file);
      database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -262144');
      await fill(sqliteFiller(database), filling, progress);
      database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      database.close();
      return keep(stores, `sqlite:${file}`);
    },
    async raw(ms) {
      return timed(ms, async () => {
        const id = randomRow();
        begin.run();
        update.all(id);
        insert.run(id, RAW_TEXT);
        commit.run();
      });
    },
    async close() {
      for (const store of stores) await store.close();
      rawDatabase.close();
      await rm(home, { recursive: true });
    },
  };
}

export function sqliteFiller(database: DatabaseSync): Filler {
  return {
    numbers: (from, to) =>
      `(WITH RECURSIVE numbers (n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${to})
        SELECT n FROM numbers) numbers`,
    run: async (sql) => database.exec(sql),
  };
}

async function startServer(): Promise<BenchEngine> {
  const server = await startPostgres();
  const stores: Store[] = [];
  const rawClient = new pg.Client({ connectionString: server.url });
  await rawClient.connect();
  for (const table of RAW_TABLES) await rawClient.query(table);
  await rawClient.query(
    `INSERT INTO raw_sessions SELECT n, 'active', 1 FROM ${postgresFiller(rawClient).numbers(1, RAW_ROWS)}`,
  );
  const update = 'UPDATE raw_sessions SET version = version + 1 WHERE id = $1 RETURNING version';
  const insert = 'INSERT INTO raw_events VALUES ($1, $2)';
  return {
    name: 'postgres',
    async fill(filling, progress) {
      const { url } = await createDatabase(server.url);
      await (await openStore(url, '', DEFAULT_RESET_RULES)).close();
      const client = new pg.Client({
        connectionString: url,
        options: '-c search_path=moirai -c synchronous_commit=off',
      });
      await client.connect();
      await fill(postgresFiller(client), filling, progress);
      await client.query('VACUUM ANALYZE');
      await client.query('CHECKPOINT');
      await client.end();
      return keep(stores, url);
    },
    raw: (ms) =>
      timed(ms, async () => {
        const id = randomRow();
        await rawClient.query('BEGIN');
        await rawClient.query({ name: 'update', text: update, values: [id] });
        await rawClient.query({ name: 'insert', text: insert, values: [id, RAW_TEXT] });
        await rawClient.query('COMMIT');
      }),
    async close() {
      for (const store of stores) await store.close();
      await rawClient.end();
      await server.stop();
    },
  };
}

function postgresFiller(client: pg.Client): Filler {
  return {
    numbers: (from, to) => `generate_series(${from}::bigint, ${to}) AS numbers (n)`,
    run: async (sql) => {
      await client.query(sql);
    },
  };
}

async function keep(stores: Store[], url: string): Promise<Filled> {
  const store = await openStore(url, '', DEFAULT_RESET_RULES);
  stores.push(store);
  await boot(store);
  return { url, store };
}

async function timed(ms: number, transaction: () => Promise<unknown>): Promise<Rate> {
  const latencies: number[] = [];
  const began = performance.now();
  while (performance.now() - began < ms) {
    const sent = performance.now();
    await transaction();
    latencies.push(performance.now() - sent);
  }
  return rateOf(latencies, performance.now() - began);
}
