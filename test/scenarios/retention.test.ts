import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { Upkeep } from '../../src/engine/upkeep.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import {
  bootTestEngine,
  chatConversation,
  ENGINES,
  openTestStore,
  TestClock,
  type TestStore,
} from '../support/stores.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe.each(ENGINES)('a gateway that keeps sessions for a while on %s', (engineName) => {
  let opened: TestStore;
  let engine: Engine;
  let upkeep: Upkeep;
  let clock: TestClock;
  let hourly: (() => void)[];
  const failures: unknown[] = [];

  beforeEach(async () => {
    clock = new TestClock(Date.parse('2026-02-02T12:00:00Z'));
    opened = await openTestStore(engineName, DEFAULT_RESET_RULES, clock);
    engine = await bootTestEngine(opened.store, 1000 * DAY);
    hourly = [];
    failures.length = 0;
    upkeep = new Upkeep(engine, {
      heartbeatMs: 1000,
      // Only what is done every hour is done, and when the test says so.
      timers: {
        elapsed: () => 0,
        after: (ms, action) => {
          if (ms === HOUR) hourly.push(action);
          return () => undefined;
        },
      },
      wallClock: clock.now,
      failed: (error) => failures.push(error),
      lost: () => failures.push('lost'),
      expire: false,
      retention: { chat: null, api: 30 * DAY, batch: 0 },
    });
    await upkeep.start();
  });
  afterEach(async () => {
    await upkeep.stop();
    await opened.remove();
  });

  test('removes them once an hour, those of a day at least, and keeps the others', async () => {
    const chat = await ended('chat');
    const old = await ended('api');
    clock.pass(20 * DAY);
    const young = await ended('api');
    clock.pass(8 * DAY);
    const yesterday = await ended('batch');
    clock.pass(2 * DAY);
    const today = await ended('batch');
    const due = hourly.splice(0);
    for (const action of due) action();
    // What is done asks to be done again in an hour.
    await vi.waitUntil(() => hourly.length === due.length, { timeout: 10_000 });
    expect(failures).toEqual([]);
    expect(await kept([chat, old, young, yesterday, today])).toEqual([chat, young, today]);
  });

  async function ended(kind: 'api' | 'chat' | 'batch'): Promise<string> {
    const { id } = await engine.start({ ...chatConversation(kind), kind });
    await engine.end(id, { reason: 'api_close', trigger: 'api' });
    return id;
  }

  async function kept(ids: readonly string[]): Promise<string[]> {
    const found = await Promise.all(ids.map((sessionId) => engine.store.read('getSession', { sessionId })));
    return found.flatMap((session) => (session === null ? [] : [session.id]));
  }
});
