import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { type PostgresOptions, PostgresStore } from '../../src/store/postgres/store.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy.ts';
import { fakeClock, Scene } from './contract/scene.ts';

// A real server behind a network that the test troubles: what the store says of each write, and that it recovers by itself.

let database: TestDatabase;
let proxy: PostgresProxy;

beforeAll(async () => {
  database = await createDatabase();
  proxy = await startPostgresProxy(database.url);
});
afterAll(async () => {
  await proxy.close();
  await database.drop();
});

let scenes = 0;

/** An instance that reaches the server by way of the proxy. */
async function troubledScene(options: PostgresOptions = {}): Promise<Scene> {
  const clock = fakeClock();
  const open = (): Promise<PostgresStore> =>
    PostgresStore.open(proxy.through(database.url), DEFAULT_RESET_RULES, { clock, ...options });
  const store = await open();
  const scene = new Scene({
    store,
    clock,
    another: open,
    reopen: () => Promise.reject(new Error('a test of trouble opens its store once')),
    raw: () => Promise.reject(new Error('a test of trouble asks past the proxy by itself')),
    close: () => store.close(),
  });
  scene.instance = `instance-${++scenes}`;
  await scene.boot();
  return scene;
}

test('a commit whose answer is lost is repeated and applied once', async () => {
  const scene = await troubledScene();
  const lost = proxy.troubleNextCommit('cut-after');
  const { session } = await scene.ask(`lost-${scenes}`);
  await lost;
  expect(await scene.types(session.id)).toEqual(['session:start', 'agent:start']);
  await scene.opened.close();
});
