import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { openStore } from '../../src/store/open-store.ts';
import { until } from '../cli/cli-fixture.ts';
import { someOf } from '../support/full-run.ts';
import { createDatabase } from '../support/postgres.ts';
import { share } from '../support/share.ts';
import type { GatewayProcess } from './process.ts';
import { TelegramScene } from './telegram-scene.ts';

const SECONDS = share(3, 60);
const CHATS = Array.from({ length: 20 }, (_, i) => 1000 + i);
const EVERY_MS = 1000;

let scene: TelegramScene;
afterEach(() => scene.close());

/** How a store comes to refuse every write, and is well again. */
interface Trouble {
  readonly settings: Record<string, unknown>;
  readonly storeUrl: (gateway: GatewayProcess) => string;
  begin(gateway: GatewayProcess): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

async function sqliteTrouble(): Promise<Trouble> {
  return {
    settings: {},
    storeUrl: () => 'sqlite:state.db',
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
    storeUrl: () => database.url,
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
    scene = await TelegramScene.open();
    const { bot } = scene;
    const gateway = scene.gateway(trouble.settings, { allow: ['*'] });
    await gateway.start();
    const { pid } = gateway;
    let said = 0;
    const load = async (ms: number): Promise<void> => {
      for (const end = performance.now() + ms; performance.now() < end; await sleep(EVERY_MS)) {
        said++;
        for (const chat of CHATS) bot.say({ text: `m${said}`, chat, from: chat });
      }
    };
    const answered = (chat: number): string[] =>
      scene.textsIn(chat).flatMap((text) => [...text.matchAll(/m\d+/g)].map(([m]) => m));

    await load(2000);
    const recover = await trouble.begin(gateway);
    await load(SECONDS * 1000);
    await recover();
    await load(2000);

    const all = Array.from({ length: said }, (_, i) => `m${i + 1}`);
    const last = all.at(-1) ?? '';
    await until('all are answered', () => CHATS.every((chat) => answered(chat).includes(last)), 150_000);
    for (const chat of CHATS) expect([chat, answered(chat)]).toEqual([chat, all]);
    expect(gateway.pid).toBe(pid);
    expect(await gateway.get('/ready')).toMatchObject({ state: 'ready' });

    const store = await openStore(trouble.storeUrl(gateway), gateway.home, DEFAULT_RESET_RULES, { inline: true });
    await until('nothing is under way', async () => {
      const turns = await store.read('unfinishedTurns', { limit: 10 });
      const { queued = 0 } = await store.read('countDeliveries', {});
      return turns.length + queued === 0;
    });
    const [instance] = await store.read('listInstances', {});
    const held = await store.read('heldBy', { instance: instance?.id ?? '' });
    expect(held.claims).toEqual([]);
    expect(held.sessions.filter(({ running }) => running)).toEqual([]);
    expect((await store.read('checkPromises', { sample: 3 })).filter(({ broken }) => broken > 0)).toEqual([]);
    await store.close();
    await gateway.end('SIGKILL');
    await trouble.close();
  },
);
