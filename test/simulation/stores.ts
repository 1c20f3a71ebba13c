import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { InlineSqliteStore } from '../../src/store/sqlite/store.ts';
import type { StoreDump } from './check-store.ts';
import type { VirtualTime } from './virtual-time.ts';
import { type OpenedStore, SIM_RULES } from './world.ts';

const TABLES = {
  sessions: 'SELECT * FROM sessions ORDER BY id',
  events: 'SELECT * FROM events ORDER BY no',
  turns: 'SELECT * FROM turns ORDER BY id',
  lanes: 'SELECT * FROM lanes ORDER BY queue, key',
  deliveries: 'SELECT * FROM deliveries ORDER BY no',
  runs: 'SELECT * FROM job_runs ORDER BY job_id, tick_at',
} as const;

/** Real SQLite files, in memory-backed storage where there is some: the simulation is about logic, not about disks. */
export class SqliteFiles {
  readonly #dir: string;
  readonly #template: string;
  #next = 0;

  constructor() {
    const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
    this.#dir = mkdtempSync(join(base, 'moirai-simulation-'));
    this.#template = join(this.#dir, 'template.db');
    void new InlineSqliteStore(this.#template, { now: () => 0, lease: () => 0 }, SIM_RULES).close();
  }

  open = async (time: Pick<VirtualTime, 'now' | 'lease'>): Promise<OpenedStore> => {
    const dir = join(this.#dir, String(this.#next++));
    mkdirSync(dir);
    const path = join(dir, 'state.db');
    copyFileSync(this.#template, path);
    const store = new InlineSqliteStore(path, { now: () => time.now(), lease: () => time.lease() }, SIM_RULES);
    return {
      store,
      dump: async () => dumpSqlite(path),
      close: async () => {
        await store.close();
        rmSync(dir, { recursive: true });
      },
    };
  };

  remove(): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

function dumpSqlite(path: string): StoreDump {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const rows = (sql: string): StoreDump['events'] => db.prepare(sql).all() as StoreDump['events'];
    return {
      sessions: rows(TABLES.sessions),
      events: rows(TABLES.events),
      turns: rows(TABLES.turns),
      lanes: rows(TABLES.lanes),
      deliveries: rows(TABLES.deliveries),
      runs: rows(TABLES.runs),
    };
  } finally {
    db.close();
  }
}

/** One PostgreSQL database, emptied for every seed. */
export function postgresStores(url: string): (time: Pick<VirtualTime, 'now' | 'lease'>) => Promise<OpenedStore> {
  return async (time) => {
    const clock = { now: () => time.now(), lease: () => time.lease() };
    const store = await PostgresStore.open(url, SIM_RULES, { clock, maxConnections: 2 });
    const client = new pg.Client({ connectionString: url, options: '-c search_path=moirai' });
    client.setTypeParser(20, Number);
    await client.connect();
    await client.query(
      'TRUNCATE sessions, events, turns, messages, lanes, dead_letters, subscribers, instances, deliveries, jobs, job_runs RESTART IDENTITY',
    );
    await client.query("SELECT setval('event_seq', 1, false)");
    const rows = async (sql: string): Promise<StoreDump['events']> => (await client.query(sql)).rows;
    return {
      store,
      dump: async () => ({
        sessions: await rows(TABLES.sessions),
        events: await rows(TABLES.events),
        turns: await rows(TABLES.turns),
        lanes: await rows(TABLES.lanes),
        deliveries: await rows(TABLES.deliveries),
        runs: await rows(TABLES.runs),
      }),
      close: async () => {
        await client.end();
        await store.close();
      },
    };
  };
}
