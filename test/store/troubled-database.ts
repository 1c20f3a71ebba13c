import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { type PostgresOptions, PostgresStore } from '../../src/store/postgres/store.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy.ts';
import { fakeClock, Scene } from './contract/scene.ts';

/** A part of what the program waits, so that no test takes long. */
export const DEADLINES = { tryMs: 2000, totalMs: 6000, beatMs: 2000 };
/** For tests in which something waits on purpose: longer than any of them takes. */
export const PATIENT = { ...DEADLINES, tryMs: 20_000, totalMs: 60_000 };
/** A lock is waited for longer than any test takes, a connection for ten seconds: who has to wait for one is refused. */
export const LONG_TRIES = { ...DEADLINES, tryMs: 50_000, totalMs: 60_000 };

/** A database for the tests of one file, with a network before it that they trouble, and a way past it. */
export class TroubledDatabase {
  database!: TestDatabase;
  proxy!: PostgresProxy;
  /** A connection past the proxy. */
  outside!: pg.Client;
  #scenes = 0;

  /** Call once at the top of a file. */
  static forThisFile(): TroubledDatabase {
    const troubled = new TroubledDatabase();
    beforeAll(async () => {
      troubled.database = await createDatabase();
      troubled.proxy = await startPostgresProxy(troubled.database.url);
      // Makes the schema that connections past the proxy look at.
      await (await troubled.scene()).opened.close();
      troubled.outside = await troubled.connect();
    });
    afterEach(() => troubled.proxy.restore());
    afterAll(async () => {
      await troubled.outside.end();
      await troubled.proxy.close();
      await troubled.database.drop();
    });
    return troubled;
  }

  /** An instance that reaches the server by way of the proxy. */
  async scene(options: PostgresOptions = {}): Promise<Scene> {
    const clock = fakeClock();
    const url = this.proxy.through(this.database.url);
    const store = await PostgresStore.open(url, DEFAULT_RESET_RULES, { clock, deadlines: DEADLINES, ...options });
    const never = (): Promise<never> => Promise.reject(new Error('a test of trouble opens its store once'));
    const scene = new Scene({ store, clock, another: never, reopen: never, raw: never, close: () => store.close() });
    scene.instance = `instance-${++this.#scenes}`;
    await scene.boot();
    return scene;
  }

  async connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.database.url, options: '-c search_path=moirai' });
    await client.connect();
    return client;
  }

  /** Holds conversations from outside until told to let go. */
  async hold(...keys: string[]): Promise<() => Promise<void>> {
    const client = await this.connect();
    await client.query('BEGIN');
    for (const key of keys) await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [key]);
    return async () => {
      await client.query('ROLLBACK');
      await client.end();
    };
  }

  /** Waits until so many transactions of the store stand before a lock. */
  async untilWaiting(count: number): Promise<void> {
    const waiting = `SELECT count(*)::int AS n FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    while ((await this.outside.query(waiting)).rows[0].n < count) await sleep(10);
  }
}
