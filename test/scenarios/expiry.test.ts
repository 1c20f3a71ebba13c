import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { Upkeep } from '../../src/engine/upkeep.ts';
import { DEFAULT_RESET_RULES, type ResetRules } from '../../src/lifecycle/reset-policy.ts';
import { processTimers } from '../../src/queue/timers.ts';
import { bootTestEngine, chatConversation, ENGINES, openTestStore, type TestStore } from '../support/stores.ts';

const IDLE_MS = 150;
const RULES: ResetRules = {
  ...DEFAULT_RESET_RULES,
  reset: { ...DEFAULT_RESET_RULES.reset, mode: 'idle', idleMs: IDLE_MS },
};

describe.each(ENGINES)('a process that watches deadlines on %s', (engineName) => {
  let opened: TestStore;
  let engine: Engine;
  let upkeep: Upkeep;

  beforeEach(async () => {
    opened = await openTestStore(engineName, RULES);
    engine = await bootTestEngine(opened.store);
    upkeep = watch(engine);
  });
  afterEach(async () => {
    await upkeep.stop();
    await opened.remove();
  });

  test('ends a session when its time has come, with nobody writing', async () => {
    await upkeep.start();
    const { session } = await talk(engine, 1);
    const ended = await untilEnded(session.id);
    expect(ended.endReason).toBe('idle_expiry');
    expect(ended.endedAt ?? 0).toBeGreaterThanOrEqual(ended.lastActivityAt + IDLE_MS);
    expect(await triggerOf(session.id)).toBe('watcher');
  });

  test('lets a session in a turn live until the turn is over', async () => {
    await upkeep.start();
    const received = await engine.receive({
      conversation: chatConversation(1),
      text: 'long',
      originRef: null,
      by: 'user',
    });
    await pause(IDLE_MS * 4);
    const during = await engine.store.read('getSession', { sessionId: received.session.id });
    expect(during).toMatchObject({ state: 'open', expiresAt: null });
    const hold = { sessionId: received.session.id, epoch: received.session.epoch };
    const loaded = await engine.finish(hold, received.turn.id, DONE);
    expect(loaded.session.expiresAt).toBe(loaded.session.lastActivityAt + IDLE_MS);
    expect((await untilEnded(received.session.id)).endReason).toBe('idle_expiry');
  });

  test('ends at its start what became overdue while nobody watched', async () => {
    const { session } = await talk(engine, 1);
    await pause(IDLE_MS + 50);
    await upkeep.start();
    const ended = await untilEnded(session.id);
    expect(ended.endReason).toBe('idle_expiry');
    expect(await triggerOf(session.id)).toBe('startup');
  });

  test('ends nothing at its start before what has to be settled first is settled, however often that fails', async () => {
    const { session } = await talk(engine, 1);
    await pause(IDLE_MS + 50);
    const states: string[] = [];
    const patient = watch(engine, async () => {
      states.push((await engine.store.read('getSession', { sessionId: session.id }))?.state ?? 'gone');
      if (states.length < 3) throw new TypeError('not yet');
    });
    await patient.start();
    expect(states).toEqual(['open', 'open', 'open']);
    expect((await untilEnded(session.id)).endReason).toBe('idle_expiry');
    await patient.stop();
  });

  test('is not kept waiting by what other processes write', async () => {
    await upkeep.start();
    const other = await bootTestEngine(await opened.again());
    const { session } = await talk(other, 1);
    // On SQLite nobody tells it: a later deadline of its own, or its longest sleep, makes it look.
    await talk(engine, 2);
    expect((await untilEnded(session.id)).endReason).toBe('idle_expiry');
  });

  async function untilEnded(sessionId: string) {
    for (let i = 0; i < 400; i++) {
      const session = await engine.store.read('getSession', { sessionId });
      if (session?.state === 'ended') return session;
      await pause(20);
    }
    throw new TypeError(`${sessionId} did not end`);
  }

  async function triggerOf(sessionId: string): Promise<unknown> {
    const filter = { after: 0, limit: 10, types: ['session:end'], sessionId };
    const { events } = await engine.store.read('listEvents', filter);
    return events[0]?.event.trigger;
  }
});

const DONE = { outcome: 'done', response: 'ok', model: null, usage: null } as const;

async function talk(engine: Engine, chat: number) {
  const received = await engine.receive({
    conversation: chatConversation(chat),
    text: 'hi',
    originRef: null,
    by: 'user',
  });
  const hold = { sessionId: received.session.id, epoch: received.session.epoch };
  return engine.finish(hold, received.turn.id, DONE);
}

function watch(engine: Engine, beforeExpiry?: () => Promise<void>): Upkeep {
  return new Upkeep(engine, {
    ...(beforeExpiry === undefined ? {} : { beforeExpiry }),
    heartbeatMs: 1000,
    timers: processTimers,
    wallClock: Date.now,
    failed: (error) => beforeExpiry ?? console.error(error),
    lost: () => console.error('the lease was lost'),
    expire: true,
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
