import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import type { Store } from '../../src/store/port.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { InlineSqliteStore, SqliteStore } from '../../src/store/sqlite/store.ts';
import type { Row } from '../../src/store/transaction.ts';
import { createDatabase } from '../support/postgres.ts';
import { fakeClock, type Open, type Opened, type TestClock } from './contract/scene.ts';

/** An engine for the tests of one file. */
export interface TestEngine {
  readonly open: Open;
  /** Closes and removes what its tests shared. */
  remove(): Promise<void>;
}

const TABLES = [
  ...['instances', 'sessions', 'turns', 'messages', 'events'],
  ...['subscribers', 'lanes', 'dead_letters', 'deliveries', 'facts'],
  ...['pairings', 'pairing_locks', 'credentials', 'places'],
  ...['jobs', 'job_runs', 'told', 'approvals', 'approval_rules', 'turn_requests', 'moved_chats'],
  ...['turn_files', 'platform_state', 'live_replies'],
];

/** SQLite in this thread, on a clock of the test's. Every test has a file of its own. */
export const openInlineSqlite: Open = async () => {
  const clock = fakeClock();
  const folder = mkdtempSync(join(tmpdir(), 'moirai-store-'));
  const path = join(folder, 'state.db');
  const openStore = async () => new InlineSqliteStore(path, clock, DEFAULT_RESET_RULES);
  const opened = keep(clock, await openStore(), openStore, rawSqlite(path));
  return {
    ...opened,
    close: async () => {
      await opened.close();
      rmSync(folder, { recursive: true });
    },
  };
};

/** SQLite as a gateway runs it: a writer thread, a reader thread, the machine's clock. Tests share the threads. */
export async function threadedSqlite(): Promise<TestEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'moirai-store-'));
  const path = join(folder, 'state.db');
  const openStore = (): Promise<Store> => SqliteStore.open(path, DEFAULT_RESET_RULES);
  const raw = rawSqlite(path);
  let store = await openStore();
  return {
    open: async () => {
      emptySqlite(path);
      const opened = keep(realClock, store, openStore, raw);
      return {
        ...opened,
        reopen: async () => {
          store = await opened.reopen();
          return store;
        },
        close: async () => opened.closeOthers(),
      };
    },
    remove: async () => {
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** PostgreSQL on a clock of the test's. Tests share a database, emptied for each. */
export async function postgres(): Promise<TestEngine & { readonly url: string }> {
  const database = await createDatabase();
  const client = new pg.Client({ connectionString: database.url, options: '-c search_path=moirai' });
  await client.connect();
  const raw: Opened['raw'] = async (sql, ...params) => {
    let n = 0;
    const text = sql.replace(/\?/g, () => `$${++n}`);
    return (await client.query<Row>(text, params)).rows;
  };
  return {
    url: database.url,
    open: async () => {
      const clock = fakeClock();
      const openStore = () => PostgresStore.open(database.url, DEFAULT_RESET_RULES, { clock });
      const store = await openStore();
      await client.query(TABLES.map((table) => `DELETE FROM ${table};`).join(' '));
      return keep(clock, store, openStore, raw);
    },
    remove: async () => {
      await client.end();
      await database.drop();
    },
  };
}

/** For stores on real time: what needs another time cannot be tested on them. */
const realClock: TestClock = {
  now: () => Date.now(),
  lease: () => Date.now(),
  advance: refuse,
  set: refuse,
};

function refuse(): never {
  throw new Error('this store runs on real time');
}

function rawSqlite(path: string): Opened['raw'] {
  return async (sql, ...params) => {
    const db = new DatabaseSync(path, { timeout: 5000 });
    try {
      return db.prepare(sql).all(...params) as Row[];
    } finally {
      db.close();
    }
  };
}

/** In one transaction: each would cost a write to the disk. */
function emptySqlite(path: string): void {
  const db = new DatabaseSync(path, { timeout: 5000 });
  const deletes = [...TABLES, 'message_search'].map((table) => `DELETE FROM ${table};`);
  db.exec(`BEGIN IMMEDIATE; ${deletes.join(' ')} COMMIT;`);
  db.close();
}

function keep(clock: TestClock, first: Store, openStore: () => Promise<Store>, raw: Opened['raw']) {
  let store = first;
  const others: Store[] = [];
  const closeOthers = async (): Promise<void> => {
    for (const other of others) await other.close();
  };
  return {
    store,
    clock,
    raw,
    another: async () => {
      const other = await openStore();
      others.push(other);
      return other;
    },
    reopen: async () => {
      await store.close();
      store = await openStore();
      return store;
    },
    closeOthers,
    close: async () => {
      await closeOthers();
      await store.close();
    },
  };
}
