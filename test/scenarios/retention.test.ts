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
    const { reset } = DEFAULT_RESET_RULES;
    const rules = { ...DEFAULT_RESET_RULES, reset: { ...reset, mode: 'none' as const } };
    opened = await openTestStore(engineName, rules, clock);
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
      retention: { chat: null, api: 30 * DAY, batch: 0, events: 90 * DAY },
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
    await anHourLater();
    expect(await kept([chat, old, young, yesterday, today])).toEqual([chat, young, today]);
  });

  test('removes events that are older than the log goes back, but none that a subscriber has not received', async () => {
    const { store } = engine;
    await store.write('subscribe', { name: 'away', patterns: ['agent:*'], from: 'now' });
    const waiting = await talk('waiting');
    const gone = await ended('api');
    const open = await talk('open');
    await receiveAll('away', [chatConversation('waiting').key]);
    clock.pass(80 * DAY);
    await talk('open');
    clock.pass(11 * DAY);
    await anHourLater();

    const { events } = await store.read('listEvents', { after: 0, limit: 500, types: [], sessionId: null });
    const of = (id: string): string[] => events.flatMap(({ event }) => (event.session_id === id ? [event.type] : []));
    expect(of(gone)).toEqual([]);
    expect(of(open)).toEqual(['agent:start', 'agent:end']);
    expect(of(waiting)).toEqual(['agent:start', 'agent:end']);
    // What is left is found, and holds together.
    const page = await store.read('listEvents', { after: 0, limit: 500, types: [], sessionId: open });
    expect(page.events).toHaveLength(2);
    expect(await store.read('lastEvents', { sessionId: open, limit: 10 })).toHaveLength(2);
    expect((await store.read('checkPromises', { sample: 3 })).filter(({ broken }) => broken > 0)).toEqual([]);
    await store.write('subscribe', { name: 'fresh', patterns: ['agent:*'], from: 'open' });
    expect(await receiveAll('fresh')).toContain(chatConversation('open').key);
    expect(await engine.delete(open, 'cli')).toEqual({ ended: true, already: false });
    expect(await engine.delete(open, 'cli')).toEqual({ ended: false, already: true });

    // Once it is received it goes too; the last event of a log stays, so that its numbers go on.
    await receiveAll('away');
    await receiveAll('fresh');
    const newest = await store.read('lastSeq', {});
    clock.pass(100 * DAY);
    await anHourLater();
    const left = await store.read('listEvents', { after: 0, limit: 500, types: [], sessionId: null });
    expect(left.events.map(({ seq }) => seq)).toEqual([newest]);
    expect((await store.read('checkPromises', { sample: 3 })).filter(({ broken }) => broken > 0)).toEqual([]);
    await talk('open');
    const more = await store.read('listEvents', { after: newest, limit: 500, types: [], sessionId: null });
    expect(more.events.map(({ event }) => event.type)).toEqual(['session:start', 'agent:start', 'agent:end']);
  });

  /** Does once what is done every hour. */
  async function anHourLater(): Promise<void> {
    const due = hourly.splice(0);
    for (const action of due) action();
    // What is done asks to be done again in an hour.
    await vi.waitUntil(() => hourly.length === due.length, { timeout: 10_000 });
    expect(failures).toEqual([]);
  }

  async function talk(chat: string): Promise<string> {
    const conversation = { ...chatConversation(chat) };
    const { session, turn } = await engine.receive({ conversation, text: 'hi', originRef: null, by: 'user' });
    const result = { outcome: 'done', response: 'yes', model: null, usage: null } as const;
    await engine.finish({ sessionId: session.id, epoch: session.epoch }, turn.id, result);
    return session.id;
  }

  /** Hands a subscriber everything, but for some conversations; returns the conversations it heard of. */
  async function receiveAll(subscriber: string, except: readonly string[] = []): Promise<string[]> {
    const context = engine.commandContext();
    const token = `token of ${subscriber}`;
    const claim = { context, subscriber, queue: `events/${subscriber}`, token, again: true };
    const { lanes } = await engine.store.write('claimEvents', { ...claim, limit: 99, retries: 99, eventsPerLane: 99 });
    for (const { key, upTo } of lanes) {
      if (except.includes(key)) continue;
      await engine.store.write('ackEvents', { context, subscriber, key, token, delivered: { upTo, replayed: [] } });
    }
    return lanes.map(({ key }) => key);
  }

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
