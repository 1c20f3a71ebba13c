import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { createDatabase, type PostgresServer, startPostgres, type TestDatabase } from '../support/postgres.ts';
import { fakeClock, Scene } from './contract/scene.ts';

// A server of its own that goes away and comes back under one store, which is never opened again.

const DEADLINES = { tryMs: 2000, totalMs: 6000, beatMs: 2000 };
const TALKERS = 6;

let server: PostgresServer;
let database: TestDatabase;
let scene: Scene;
let talk: Talk;

beforeAll(async () => {
  server = await startPostgres();
  database = await createDatabase(server.url);
  const clock = fakeClock();
  const store = await PostgresStore.open(database.url, DEFAULT_RESET_RULES, { clock, deadlines: DEADLINES });
  const never = (): Promise<never> => Promise.reject(new Error('this store is opened once'));
  scene = new Scene({ store, clock, another: never, reopen: never, raw: never, close: () => store.close() });
  await scene.boot();
}, 120_000);
afterAll(async () => {
  await scene.store.close();
  await server.stop();
});
beforeEach(() => {
  talk = new Talk();
});
afterEach(() => talk.stop());

let talks = 0;

/** Several people who write all the time; what the store does not take is given to it again under the same id. */
class Talk {
  readonly codes = new Set<string>();
  readonly #prefix = `talk-${++talks}`;
  readonly #said = new Map<string, number>();
  #stopped = false;
  readonly #talkers = Array.from({ length: TALKERS }, (_, i) => this.#talk(`${this.#prefix}-${i}`));

  /** Waits until everybody has said so many more things. */
  async goesOn(more = 3): Promise<void> {
    const before = new Map(this.#said);
    const lags = (chat: string): boolean => (this.#said.get(chat) ?? 0) < (before.get(chat) ?? 0) + more;
    const chats = Array.from({ length: TALKERS }, (_, i) => `${this.#prefix}-${i}`);
    while (chats.some(lags)) await sleep(20);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#talkers);
  }

  /** How many turns the store has for each person, and how many were acknowledged. */
  async counts(): Promise<{ kept: number[]; said: number[] }> {
    const client = new pg.Client({ connectionString: database.url, options: '-c search_path=moirai' });
    await client.connect();
    const { rows } = await client.query(
      `SELECT count(*)::int AS n FROM turns JOIN sessions s ON s.id = session_id
       WHERE s.key LIKE $1 GROUP BY s.key ORDER BY s.key`,
      [`%:${this.#prefix}-%`],
    );
    await client.end();
    const said = [...this.#said].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, n]) => n);
    return { kept: rows.map(({ n }) => n), said };
  }

  async #talk(chat: string): Promise<void> {
    for (let n = 1; !this.#stopped; n++) {
      const originRef = `${chat}:${n}`;
      const rest = { originRef, turnId: originRef, context: scene.context(originRef) };
      while (!(await this.#taken(scene.say(chat, 'hello', rest)))) await sleep(50);
      this.#said.set(chat, n);
      await sleep(5);
    }
  }

  async #taken(write: Promise<unknown>): Promise<boolean> {
    try {
      await write;
      return true;
    } catch (thrown) {
      this.codes.add((thrown as { code?: string }).code ?? String(thrown));
      return false;
    }
  }
}

const TROUBLE = ['store_unreachable', 'store_outcome_unknown', 'store_locked', 'store_timeout'];

async function expectRecovered(): Promise<void> {
  await talk.goesOn();
  await scene.store.write('beat', { instance: scene.instance, ttlMs: 90_000_000 });
  await talk.stop();
  const { kept, said } = await talk.counts();
  expect(kept).toEqual(said);
  for (const code of talk.codes) expect(TROUBLE).toContain(code);
}

test('a store goes on after the server has ended all its connections ten times in a row', async () => {
  for (let i = 0; i < 10; i++) {
    await talk.goesOn(1);
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'moirai'");
    await client.end();
  }
  await expectRecovered();
});

test('a store goes on after its server was stopped and started again', async () => {
  await talk.goesOn();
  await server.restart();
  await expectRecovered();
});

test('a store goes on after its server left at once and recovered from its log', async () => {
  await talk.goesOn();
  await server.restartImmediately();
  await expectRecovered();
});

test('a store goes on after its server was killed', async () => {
  await talk.goesOn();
  await server.crash();
  await expectRecovered();
});

test('a store goes on after its server stood still for longer than all deadlines', async () => {
  await talk.goesOn();
  const goOn = await server.freeze();
  await sleep(DEADLINES.totalMs + 3 * DEADLINES.tryMs);
  goOn();
  await expectRecovered();
  expect(talk.codes.size).toBeGreaterThan(0);
});
