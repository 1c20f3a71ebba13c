import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { type PostgresOptions, PostgresStore } from '../../src/store/postgres/store.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy.ts';
import { codeOf } from './contract/code-of.ts';
import { fakeClock, Scene } from './contract/scene.ts';

// A real server behind a network that the test troubles: what the store says of each write, and that it recovers by itself.

/** A tenth of what the program waits, so that nothing here takes long. */
const DEADLINES = { tryMs: 1500, totalMs: 4500, beatMs: 1000 };

let database: TestDatabase;
let proxy: PostgresProxy;
let outside: pg.Client;

beforeAll(async () => {
  database = await createDatabase();
  proxy = await startPostgresProxy(database.url);
  outside = await connectOutside();
});
afterEach(() => proxy.restore());
afterAll(async () => {
  await outside.end();
  await proxy.close();
  await database.drop();
});

let scenes = 0;

/** An instance that reaches the server by way of the proxy. */
async function troubledScene(options: PostgresOptions = {}): Promise<Scene> {
  const clock = fakeClock();
  const open = (): Promise<PostgresStore> =>
    PostgresStore.open(proxy.through(database.url), DEFAULT_RESET_RULES, { clock, deadlines: DEADLINES, ...options });
  const store = await open();
  const scene = new Scene({
    store,
    clock,
    another: open,
    reopen: () => Promise.reject(new Error('a test of trouble opens its store once')),
    raw: async (sql) => (await outside.query(sql)).rows,
    close: () => store.close(),
  });
  scene.instance = `instance-${++scenes}`;
  await scene.boot();
  return scene;
}

/** A connection past the proxy. */
async function connectOutside(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.url, options: '-c search_path=moirai' });
  await client.connect();
  return client;
}

/** Holds conversations from outside until told to let go. */
async function holdConversations(...keys: string[]): Promise<() => Promise<void>> {
  const client = await connectOutside();
  await client.query('BEGIN');
  for (const key of keys) await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [key]);
  return async () => {
    await client.query('ROLLBACK');
    await client.end();
  };
}

/** Waits until so many transactions of the store stand before a lock. */
async function untilWaiting(count: number): Promise<void> {
  const waiting = `SELECT count(*)::int AS n FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()`;
  while ((await outside.query(waiting)).rows[0].n < count) await sleep(10);
}

const beat = (scene: Scene): Promise<void> => scene.store.write('beat', { instance: scene.instance, ttlMs: 90_000 });

test('a commit whose answer is lost is repeated and applied once', async () => {
  const scene = await troubledScene();
  const lost = proxy.troubleNextCommit('cut-after');
  const { session } = await scene.ask(`lost-${scenes}`);
  await lost;
  expect(await scene.types(session.id)).toEqual(['session:start', 'agent:start']);
  await scene.opened.close();
});

test('a commit that is never answered is repeated after its deadline and applied once', async () => {
  const scene = await troubledScene();
  const lost = proxy.troubleNextCommit('silent-after');
  const { session } = await scene.ask(`silent-${scenes}`);
  await lost;
  expect(await scene.types(session.id)).toEqual(['session:start', 'agent:start']);
  await scene.opened.close();
});

test.each(['cut-before', 'cut-after'] as const)(
  'a commit without an answer is of unknown outcome while the server is away (%s)',
  async (trouble) => {
    const scene = await troubledScene();
    const context = scene.context();
    const say = () => scene.say(`away-${trouble}`, 'hello', { context, turnId: `turn-${trouble}`, originRef: trouble });
    const lost = proxy.troubleNextCommit(trouble).then(() => proxy.refuse());
    expect(await codeOf(say())).toBe('store_outcome_unknown');
    await lost;
    await proxy.restore();
    const again = await say();
    expect(await scene.types(again.session.id)).toEqual(['session:start']);
    await scene.opened.close();
  },
);

test('a write that did not come as far as its commit is not done, and says that the server is away', async () => {
  const scene = await troubledScene();
  await proxy.refuse();
  expect(await codeOf(scene.say('refused', 'hello'))).toBe('store_unreachable');
  await proxy.restore();
  const key = scene.conversation('refused').key;
  expect(await scene.store.read('openSession', { key })).toBeNull();
  await scene.opened.close();
});

test('through a silent network nothing waits longer than its deadline, and the store works again by itself', async () => {
  const scene = await troubledScene();
  await scene.start('before');
  await beat(scene);
  proxy.silence();
  const began = performance.now();
  const refusals = await Promise.all([
    codeOf(beat(scene)),
    codeOf(scene.store.read('lastSeq', {})),
    ...Array.from({ length: 30 }, (_, i) => codeOf(scene.say(`silent-${i}`, 'hello'))),
  ]);
  expect(new Set(refusals).difference(new Set(['store_unreachable', 'store_timeout']))).toEqual(new Set());
  expect(performance.now() - began).toBeLessThan(4 * DEADLINES.totalMs);
  await proxy.restore();
  await beat(scene);
  await scene.start('after');
  await scene.opened.close();
});

test('a store is not opened through a silent network, and says so', async () => {
  proxy.silence();
  expect(await codeOf(troubledScene())).toBe('store_unreachable');
});

test('writes that wait for one conversation leave the connections to others', async () => {
  const scene = await troubledScene({ deadlines: { ...DEADLINES, tryMs: 20_000, totalMs: 60_000 } });
  const { key } = scene.conversation('held');
  const release = await holdConversations(key);
  const order: number[] = [];
  const waiting = Array.from({ length: 40 }, (_, i) =>
    scene.say('held', String(i)).then(() => {
      order.push(i);
    }),
  );
  await untilWaiting(1);
  await beat(scene);
  await scene.say('other', 'hello');
  expect(await scene.store.read('openSession', { key })).toBeNull();
  expect(order).toEqual([]);
  await release();
  await Promise.all(waiting);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  await scene.opened.close();
});

test('writes that wait for many conversations leave heartbeats and reads alone', async () => {
  const scene = await troubledScene({ deadlines: { ...DEADLINES, tryMs: 20_000, totalMs: 60_000 } });
  const chats = Array.from({ length: 40 }, (_, i) => `held-${i}`);
  const release = await holdConversations(...chats.map((chat) => scene.conversation(chat).key));
  const waiting = chats.map((chat) => scene.say(chat, 'hello'));
  await untilWaiting(10);
  await beat(scene);
  await scene.store.read('lastSeq', {});
  await release();
  await Promise.all(waiting);
  await scene.opened.close();
});

test('a heartbeat does not wait for a session that is locked', async () => {
  const scene = await troubledScene();
  const { session } = await scene.ask('locked');
  const holder = await connectOutside();
  await holder.query('BEGIN');
  await holder.query('SELECT id FROM sessions WHERE id = $1 FOR UPDATE', [session.id]);
  await beat(scene);
  await holder.end();
  await scene.opened.close();
});

test('a conversation that stays locked is refused as locked, its waiting writes too', async () => {
  const scene = await troubledScene();
  const release = await holdConversations(scene.conversation('locked-for-long').key);
  const codes = await Promise.all(Array.from({ length: 5 }, (_, i) => codeOf(scene.say('locked-for-long', String(i)))));
  expect(new Set(codes)).toEqual(new Set(['store_locked']));
  await release();
  await scene.say('locked-for-long', 'now');
  await scene.opened.close();
});

test('a statement that is cancelled is refused as too slow', async () => {
  const scene = await troubledScene();
  const release = await holdConversations(scene.conversation('cancelled').key);
  const said = codeOf(scene.say('cancelled', 'hello'));
  await untilWaiting(1);
  await outside.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()`);
  expect(await said).toBe('store_timeout');
  await release();
  await scene.opened.close();
});

test('a subscriber is registered while a dump of the database runs, and no writer waits for it', async () => {
  const scene = await troubledScene();
  const dump = await connectOutside();
  await dump.query('BEGIN');
  const tables = await dump.query(
    "SELECT quote_ident(relname) AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'moirai'::regnamespace",
  );
  await dump.query(`LOCK TABLE ${tables.rows.map(({ name }) => name).join(', ')} IN ACCESS SHARE MODE`);
  expect(await scene.subscribe('during-a-dump')).toEqual({ created: true });
  await scene.say('during-a-dump', 'hello');
  expect(await scene.claim('during-a-dump')).toHaveLength(1);
  await scene.store.write('unsubscribe', { name: 'during-a-dump' });
  await dump.end();
  await scene.opened.close();
});

test('a registration that waits for a stuck writer lets the others write', async () => {
  const scene = await troubledScene({ deadlines: { ...DEADLINES, tryMs: 20_000, totalMs: 60_000 } });
  const release = await holdConversations(scene.conversation('stuck').key);
  const stuck = scene.say('stuck', 'hello');
  await untilWaiting(1);
  let registered = false;
  const subscribed = scene.subscribe('patient').then(() => {
    registered = true;
  });
  await untilWaiting(2);
  const began = performance.now();
  for (let i = 0; i < 10; i++) await scene.say('free', String(i));
  expect(performance.now() - began).toBeLessThan(15_000);
  expect(registered).toBe(false);
  await release();
  await Promise.all([stuck, subscribed]);
  await scene.store.write('unsubscribe', { name: 'patient' });
  await scene.opened.close();
});

test('a table that changes under an open store spoils no prepared statement for longer than a try', async () => {
  const scene = await troubledScene();
  const ask = () =>
    Promise.all([
      ...Array.from({ length: 6 }, () => scene.store.read('findSetting', { name: 'home' })),
      ...Array.from({ length: 6 }, (_, i) => scene.store.write('keepSetting', { name: `setting-${i}`, value: 'one' })),
    ]);
  await ask();
  await outside.query('ALTER TABLE meta ADD COLUMN newer TEXT');
  await ask();
  await outside.query('ALTER TABLE meta ALTER COLUMN value TYPE VARCHAR');
  await ask();
  await scene.opened.close();
});

/** Another instance, past the proxy, that leaves work for others to do until the listener has heard of it. */
async function untilHeard(heard: () => boolean): Promise<void> {
  const store = await PostgresStore.open(database.url, DEFAULT_RESET_RULES);
  store.onCommit(() => undefined);
  const other = new Scene({ ...(await troubledScene()).opened, store });
  other.instance = `instance-${++scenes}`;
  await other.boot();
  for (let i = 0; !heard(); i++) {
    await other.start(`heard-${scenes}-${i}`);
    await sleep(100);
  }
  await store.close();
  await other.opened.close();
}

test('a notification that no store has sent is reported and ignored', async () => {
  const problems: unknown[] = [];
  const scene = await troubledScene({ onProblem: (_, { payload }) => problems.push(payload) });
  let heard = 0;
  scene.store.onCommit(() => {
    heard++;
  });
  const foreign = ['no json', 'null', '[]', '"text"', '{}', '{"from":1,"queues":[]}', '{"from":"x","queues":{}}', ''];
  while (problems.length < foreign.length) {
    problems.length = 0;
    for (const payload of foreign) await outside.query("SELECT pg_notify('moirai', $1)", [payload]);
    await sleep(200);
  }
  expect(problems.slice(0, foreign.length)).toEqual(foreign);
  expect(heard).toBe(0);
  await untilHeard(() => heard > 0);
  await scene.opened.close();
});

test.each(['cut', 'silence'] as const)(
  'hints of others are heard again after the network was in trouble (%s)',
  async (trouble) => {
    const scene = await troubledScene();
    let heard = 0;
    scene.store.onCommit(() => {
      heard++;
    });
    await untilHeard(() => heard > 0);
    proxy[trouble]();
    await codeOf(scene.store.read('lastSeq', {}));
    await proxy.restore();
    heard = 0;
    await untilHeard(() => heard > 0);
    await scene.opened.close();
  },
);
