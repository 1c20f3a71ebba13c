import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { startPgbouncer, whyNoPgbouncer } from '../support/pgbouncer.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { RUN_ALL } from '../support/share.ts';
import { bootTestEngine, chatConversation } from '../support/stores.ts';
import { codeOf } from './contract/code-of.ts';

// What stands in store.url, and what stands between the store and the server.

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

function withParameter(name: string, value: string): string {
  const url = new URL(database.url);
  url.searchParams.set(name, value);
  return url.href;
}

async function ask(sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query(sql);
  await client.end();
  return rows;
}

describe('options in the URL', () => {
  test('are used beside those of the store, and never instead of them', async () => {
    const theirs =
      '-c search_path=public -c lock_timeout=0 -c statement_timeout=0 -c work_mem=8MB -c default_transaction_isolation=serializable';
    const store = await PostgresStore.open(withParameter('options', theirs), DEFAULT_RESET_RULES);
    const engine = await bootTestEngine(store);
    await engine.start(chatConversation(1));
    const plain = await PostgresStore.open(database.url, DEFAULT_RESET_RULES);
    expect((await plain.read('stats', {})).total).toBe(1);
    expect(await ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).toEqual([]);
    await engine.stop();
    await store.close();
    await plain.close();
  });

  test('leave the server its time limits: a lock that is not free in time is refused by the server itself', async () => {
    const url = withParameter('options', '-c lock_timeout=0 -c statement_timeout=0');
    const deadlines = { tryMs: 2000, totalMs: 2500 };
    const store = await PostgresStore.open(url, DEFAULT_RESET_RULES, { deadlines });
    const engine = await bootTestEngine(store);
    const conversation = chatConversation('locked');
    const holder = new pg.Client({ connectionString: database.url });
    await holder.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [conversation.key]);
    // Without an answer of the server it would be cut off, and called unreachable.
    expect(await codeOf(engine.start(conversation))).toBe('store_locked');
    await holder.end();
    await engine.stop();
    await store.close();
  });

  test.each([
    ['synchronous_commit=off', 'store_unsafe'],
    ['no_such_setting=1', 'store_refused'],
  ])('that the store cannot work with are refused: %s', async (option, code) => {
    const url = withParameter('options', `-c ${option}`);
    expect(await codeOf(PostgresStore.open(url, DEFAULT_RESET_RULES))).toBe(code);
  });
});

describe('a parameter of the URL', () => {
  test.each(['statement_timeout', 'query_timeout', 'client_encoding', 'replication', 'binary'])(
    'that the store sets itself, or cannot work with, is refused by its name: %s',
    async (name) => {
      const opening = PostgresStore.open(withParameter(name, '1'), DEFAULT_RESET_RULES);
      await expect(opening).rejects.toMatchObject({ code: 'store_url', message: expect.stringContaining(`"${name}"`) });
    },
  );

  test('that names the encoding which the store uses is harmless', async () => {
    await (await PostgresStore.open(withParameter('client_encoding', 'UTF8'), DEFAULT_RESET_RULES)).close();
  });

  test('that names the application is used', async () => {
    const store = await PostgresStore.open(withParameter('application_name', 'looms'), DEFAULT_RESET_RULES);
    expect(await ask("SELECT DISTINCT 1 AS one FROM pg_stat_activity WHERE application_name = 'looms'")).toHaveLength(
      1,
    );
    await store.close();
  });
});

const whyNot = whyNoPgbouncer();

test('a pooler is not skipped when MOIRAI_TEST_ALL=1', () => {
  if (RUN_ALL) expect(whyNot).toBeUndefined();
});

describe.skipIf(whyNot !== undefined)('pgbouncer in between', () => {
  test('works when it keeps a connection of the server for each of ours', async () => {
    const pooler = await startPgbouncer(database.url, { pool_mode: 'session' });
    onTestFinished(pooler.stop);
    const store = await PostgresStore.open(pooler.url, DEFAULT_RESET_RULES);
    const engine = await bootTestEngine(store);
    const sessions = await Promise.all([10, 11, 12, 13].map((chat) => engine.start(chatConversation(chat))));
    await engine.beat();
    expect(sessions.map(({ state }) => state)).toEqual(['open', 'open', 'open', 'open']);
    await engine.stop();
    await store.close();
  });

  test.each([
    { pool_mode: 'transaction' },
    { pool_mode: 'transaction', server_round_robin: '1', min_pool_size: '4' },
    { pool_mode: 'transaction', server_round_robin: '1', min_pool_size: '10' },
    { pool_mode: 'statement' },
  ])('is refused when it does not: %o', async (settings) => {
    const pooler = await startPgbouncer(database.url, settings);
    onTestFinished(pooler.stop);
    const opening = PostgresStore.open(pooler.url, DEFAULT_RESET_RULES);
    await expect(opening).rejects.toMatchObject({
      code: 'store_unsafe',
      message: expect.stringContaining('pool_mode = session'),
    });
  });
});
