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
  /** Bare durable transactions by one client: one small row each. */
  raw(ms: number): Promise<Rate>;
  close(): Promise<void>;
}

export type EngineName = BenchEngine['name'];

export function startEngine(name: EngineName): Promise<BenchEngine> {
  return name === 'sqlite' ? startSqlite() : startServer();
}

const RAW_TEXT = 'x'.repeat(200);
const FOLDER = join(import.meta.dirname, '..', '.bench');

async function startSqlite(): Promise<BenchEngine> {
  await mkdir(FOLDER, { recursive: true });
  const home = await mkdtemp(join(FOLDER, 'sqlite-'));
  const stores: Store[] = [];
  const rawDatabase = new DatabaseSync(join(home, 'raw.db'));
  rawDatabase.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE raw (id INTEGER PRIMARY KEY, v)',
  );
  const insert = rawDatabase.prepare('INSERT INTO raw (v) VALUES (?)');
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
      return timed(ms, async () => insert.run(RAW_TEXT));
    },
    async close() {
      for (const store of stores) await store.close();
      rawDatabase.close();
      await rm(home, { recursive: true });
    },
  };
}

function sqliteFiller(database: DatabaseSync): Filler {
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
  await rawClient.query('CREATE TABLE raw (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v TEXT)');
  const insert = { name: 'raw', text: 'INSERT INTO raw (v) VALUES ($1)', values: [RAW_TEXT] };
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
        await rawClient.query('BEGIN');
        await rawClient.query(insert);
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
