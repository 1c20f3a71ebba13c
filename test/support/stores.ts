import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Engine } from '../../src/engine/engine.ts';
import { describeThisProcess } from '../../src/engine/host.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { DEFAULT_RESET_RULES, type ResetRules } from '../../src/lifecycle/reset-policy.ts';
import type { StoreClock } from '../../src/store/clock.ts';
import type { Store } from '../../src/store/port.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { InlineSqliteStore, SqliteStore } from '../../src/store/sqlite/store.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import { createDatabase } from './postgres.ts';

export const ENGINES = ['sqlite', 'postgres'] as const;

export interface TestStore {
  readonly store: Store;
  /** As `store.url` of a configuration names it. */
  readonly url: string;
  /** Another connection to the same data, as another process would have. */
  again(): Promise<Store>;
  remove(): Promise<void>;
}

/** A real store of either engine, in a place of its own; on its own clock, or on one the test moves. */
export async function openTestStore(
  engine: (typeof ENGINES)[number],
  rules: ResetRules = DEFAULT_RESET_RULES,
  clock?: StoreClock,
): Promise<TestStore> {
  const others: Store[] = [];
  const { url, open, drop } = await placeFor(engine, rules, clock);
  const store = await open();
  return {
    store,
    url,
    again: async () => {
      const other = await open();
      others.push(other);
      return other;
    },
    remove: async () => {
      for (const opened of [store, ...others]) await opened.close();
      await drop();
    },
  };
}

async function placeFor(
  engine: (typeof ENGINES)[number],
  rules: ResetRules,
  clock: StoreClock | undefined,
): Promise<{ url: string; open(): Promise<Store>; drop(): Promise<void> }> {
  if (engine === 'postgres') {
    const database = await createDatabase();
    const options = clock === undefined ? {} : { clock };
    const { url } = database;
    return { url, open: () => PostgresStore.open(url, rules, options), drop: () => database.drop() };
  }
  const dir = mkdtempSync(join(tmpdir(), 'moirai-store-'));
  return {
    url: `sqlite:${join(dir, 'state.db')}`,
    open: async () =>
      clock === undefined
        ? SqliteStore.open(join(dir, 'state.db'), rules)
        : new InlineSqliteStore(join(dir, 'state.db'), clock, rules),
    drop: async () => rmSync(dir, { recursive: true }),
  };
}

let engines = 0;

/** An engine of this process on a store. */
export function bootTestEngine(store: Store, leaseTtlMs = 60_000): Promise<Engine> {
  const id = `ins_test_${process.pid}_${++engines}`;
  const instance = { id, name: null, version: 'test', ...describeThisProcess() };
  return Engine.boot({ store, ids: timeSortedIds(Date.now, Math.random), instance, leaseTtlMs });
}

export function chatConversation(chat: number | string, platform = 'telegram'): ConversationRef {
  const key = `agent:main:${platform}:dm:${chat}`;
  return { key, kind: 'chat', platform, userId: `user-${chat}`, origin: { chat }, attached: false };
}

/** A clock that stands still until a test moves it. */
export class TestClock implements StoreClock {
  #now: number;
  #lease = 0;

  constructor(start: number) {
    this.#now = start;
  }

  now = (): number => this.#now;
  lease = (): number => this.#lease;

  pass(ms: number): void {
    this.#now += ms;
    this.#lease += ms;
  }

  passUntil(moment: number): void {
    this.pass(moment - this.#now);
  }
}
