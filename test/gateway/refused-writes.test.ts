import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterEach, test } from 'vitest';
import { someOf } from '../support/full-run.ts';
import { createDatabase } from '../support/postgres.ts';
import { share } from '../support/share.ts';
import type { GatewayProcess } from './process.ts';
import { TroubleScene } from './trouble-scene.ts';

const SECONDS = share(3, 60);

let scene: TroubleScene;
afterEach(() => scene.close());

/** How a store comes to refuse every write, and is well again. */
interface Trouble {
  readonly settings: Record<string, unknown>;
  readonly storeUrl: string;
  begin(gateway: GatewayProcess): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

async function sqliteTrouble(): Promise<Trouble> {
  return {
    settings: {},
    storeUrl: 'sqlite:state.db',
    begin: async ({ home }) => {
      // Whoever else wants to write is told that the database is locked.
      const db = new DatabaseSync(join(home, 'state.db'), { timeout: 10_000 });
      db.exec('BEGIN IMMEDIATE');
      return async () => db.close();
    },
    close: async () => undefined,
  };
}

async function postgresTrouble(): Promise<Trouble> {
  const database = await createDatabase();
  const name = new URL(database.url).pathname.slice(1);
  const run = async (setting: string): Promise<void> => {
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await admin.query('SET default_transaction_read_only = off');
    await admin.query(`ALTER DATABASE "${name}" ${setting}`);
    // Connections that are open keep the setting they began with.
    await admin.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()',
      [name],
    );
    await admin.end();
  };
  return {
    settings: { store: { url: database.url } },
    storeUrl: database.url,
    begin: async () => {
      await run('SET default_transaction_read_only = on');
      return () => run('RESET default_transaction_read_only');
    },
    close: () => database.drop(),
  };
}

const engines: [name: string, make: () => Promise<Trouble>][] = [
  ['SQLite', sqliteTrouble],
  ['PostgreSQL', postgresTrouble],
];

test.each(someOf(engines, ([name]) => name === 'SQLite'))(
  `%s refuses every write for ${SECONDS} s under load: each message is answered once and in order, without a restart`,
  { timeout: 300_000 },
  async (_, make) => {
    const trouble = await make();
    const { settings, storeUrl } = trouble;
    scene = await TroubleScene.open({ settings, storeUrl, chats: 20 });
    await scene.talk(2000);
    const recover = await trouble.begin(scene.gateway);
    await scene.talk(SECONDS * 1000);
    await recover();
    await scene.talk(2000);
    await scene.expectAllAnswered();
    await scene.gateway.end('SIGKILL');
    await trouble.close();
  },
);
