import { describe, expect } from 'vitest';
import type { EventLane } from '../../../src/store/transactions/event-queue.ts';
import { codeOf } from './code-of.ts';
import { type Open, type Scene, SECOND, sceneTests } from './scene.ts';

/** What happens when a subscriber fails. */
export function deadLettersContract(open: Open): void {
  const test = sceneTests(open);

  describe('a failure', () => {
    test('makes its lane wait, then comes again with its attempts counted', async (scene) => {
      await scene.subscribe('listener');
      const { id } = await scene.start('1');
      const lane = await claimOne(scene);
      expect([lane.attempts, lane.waits]).toEqual([0, 0]);
      await scene.fail(lane, { retryInMs: 5 * SECOND });
      await scene.end(id);
      scene.clock.advance(5 * SECOND - 1);
      expect(await scene.claim('listener')).toEqual([]);
      scene.clock.advance(1);
      const again = await claimOne(scene);
      expect(again).toMatchObject({ attempts: 1, waits: 0 });
      expect(again.events.map(({ event }) => event.type)).toEqual(['session:start', 'session:end']);
      await scene.fail(again, { retryInMs: SECOND });
      scene.clock.advance(SECOND);
      expect((await claimOne(scene)).attempts).toBe(2);
    });

    test('keeps what was delivered before it', async (scene) => {
      await scene.subscribe('listener');
      await scene.ask('1');
      const lane = await claimOne(scene);
      await scene.fail(lane, { retryInMs: 0 }, 1);
      expect((await claimOne(scene)).events.map(({ event }) => event.type)).toEqual(['agent:start']);
    });

    test('is forgotten when the lane goes on', async (scene) => {
      await scene.subscribe('listener');
      const { id } = await scene.start('1');
      await scene.fail(await claimOne(scene), { retryInMs: 0 });
      await scene.end(id);
      const again = await claimOne(scene);
      await scene.ack(again, again.events[0]?.no ?? 0);
      expect(await claimOne(scene)).toMatchObject({ attempts: 0, waits: 0 });
    });

    test('is told on the first attempt and on the last, and not in between', async (scene) => {
      await scene.subscribe('listener');
      await scene.subscribe('watcher', ['hook:failed']);
      const { id } = await scene.start('1');
      for (let attempt = 1; attempt <= 4; attempt++) {
        await scene.fail(await claimOne(scene), { retryInMs: 0, dead: attempt === 4, error: `attempt ${attempt}` });
      }
      const told = await scene.drain('watcher');
      expect(told).toMatchObject([
        { subscriber: 'listener', event_id: `${id}:1`, attempts: 1, error: 'attempt 1', dead: false },
        { subscriber: 'listener', event_id: `${id}:1`, attempts: 4, error: 'attempt 4', dead: true },
      ]);
      expect(told[0]).toMatchObject({
        type: 'hook:failed',
        session_seq: null,
        session_id: id,
        session_key: 'agent:main:telegram:dm:1',
        platform: 'telegram',
        user_id: 'ada',
        kind: 'chat',
        instance: 'one',
      });
      expect(new Set(told.map((event) => event.id)).size).toBe(2);
    });

    test('that kills at the first attempt is told once', async (scene) => {
      await scene.subscribe('listener');
      await scene.start('1');
      await scene.fail(await claimOne(scene), { dead: true });
      expect(await scene.events(null, ['hook:failed'])).toMatchObject([{ attempts: 1, dead: true }]);
    });

    test('is never told to who failed', async (scene) => {
      await scene.subscribe('listener', ['*']);
      const { id } = await scene.start('1');
      await scene.fail(await claimOne(scene), { retryInMs: 0 });
      await scene.end(id);
      const heard = await scene.drain('listener');
      expect(heard.map(({ type }) => type)).toEqual(['session:start', 'session:end']);
      expect(await scene.types()).toEqual(['session:start', 'hook:failed', 'session:end']);
    });

    test('about a failure is not told', async (scene) => {
      await scene.subscribe('listener');
      await scene.start('1');
      await scene.subscribe('watcher', ['hook:failed']);
      await scene.fail(await claimOne(scene), { retryInMs: SECOND });
      await scene.fail(await claimOne(scene, 'watcher'), { retryInMs: 0 });
      await scene.fail(await claimOne(scene, 'watcher'), { retryInMs: 0, dead: true });
      expect(await scene.events(null, ['hook:failed'])).toHaveLength(1);
      const dead = await scene.store.read('listDeadLetters', { subscriber: 'watcher', limit: 10 });
      expect(dead).toHaveLength(1);
    });

    test('of a receiver that is down is waited for, not counted', async (scene) => {
      await scene.subscribe('listener');
      await scene.start('1');
      for (let wait = 1; wait <= 20; wait++) {
        const lane = await claimOne(scene);
        expect(lane).toMatchObject({ attempts: 0, waits: wait - 1 });
        await scene.fail(lane, { attempts: 0, waits: wait, retryInMs: 0 });
      }
      expect(await scene.events(null, ['hook:failed'])).toHaveLength(1);
      expect(await scene.drain('listener')).toHaveLength(1);
    });
  });

  describe('a dead letter', () => {
    test('is kept, and its lane goes on without it', async (scene) => {
      await scene.subscribe('listener', ['session:*', 'agent:*']);
      const { session } = await scene.ask('1');
      await scene.fail(await claimOne(scene), { dead: true, error: 'no such file' });
      expect((await scene.drain('listener')).map(({ type }) => type)).toEqual(['agent:start']);
      expect(await letters(scene)).toEqual([
        {
          subscriber: 'listener',
          eventId: `${session.id}:1`,
          key: session.key,
          attempts: 1,
          error: 'no such file',
          at: scene.clock.now(),
        },
      ]);
    });

    test('is replayed in order with the others, before what is new, and then gone', async (scene) => {
      await scene.subscribe('listener', ['session:*', 'agent:*']);
      const asked = await scene.ask('1');
      await scene.reset('1');
      for (let i = 0; i < 4; i++) await scene.fail(await claimOne(scene), { dead: true });
      await scene.drain('listener');
      expect(await letters(scene)).toHaveLength(4);
      const { session } = await scene.reset('1');
      expect(await scene.store.write('replay', { subscriber: 'listener', fromSeq: null })).toEqual({ events: 4 });
      const heard = await scene.drain('listener', { eventsPerLane: 3 });
      expect(heard.map(({ type }) => type)).toEqual([
        ...['session:start', 'agent:start', 'agent:end', 'session:end'],
        ...['session:end', 'session:start', 'session:reset'],
      ]);
      expect(heard[0]?.session_id).toBe(asked.session.id);
      expect(heard.at(-1)?.session_id).toBe(session.id);
      expect(await letters(scene)).toEqual([]);
    });

    test('that fails again in its replay is dead again', async (scene) => {
      await scene.subscribe('listener', ['session:*']);
      const { id } = await scene.start('1');
      await scene.end(id);
      for (const _ of [1, 2]) await scene.fail(await claimOne(scene), { dead: true });
      await scene.store.write('replay', { subscriber: 'listener', fromSeq: null });
      const lane = await claimOne(scene);
      expect(lane.events.map(({ replay }) => replay)).toEqual([true, true]);
      await scene.fail(lane, { retryInMs: 0 }, 1);
      expect(await letters(scene)).toMatchObject([{ eventId: `${id}:2` }]);
      await scene.fail(await claimOne(scene), { dead: true, error: 'still broken' });
      expect(await letters(scene)).toMatchObject([{ eventId: `${id}:2`, error: 'still broken' }]);
      expect(await scene.drain('listener')).toEqual([]);
      expect(await scene.store.write('replay', { subscriber: 'listener', fromSeq: null })).toEqual({ events: 1 });
      expect(await scene.drain('listener')).toHaveLength(1);
      expect(await letters(scene)).toEqual([]);
    });

    test('comes with everything after it when a number is named', async (scene) => {
      await scene.subscribe('listener', ['session:*']);
      await scene.start('1');
      const { id } = await scene.start('2');
      const from = (await scene.store.read('lastSeq', {})) + 1;
      await scene.end(id);
      await scene.start('3');
      await scene.drain('listener');
      expect(await scene.store.write('replay', { subscriber: 'listener', fromSeq: from })).toEqual({ events: 2 });
      const heard = await scene.drain('listener');
      expect(heard.map(({ type, session_key }) => `${session_key?.at(-1)} ${type}`).toSorted()).toEqual([
        '2 session:end',
        '3 session:start',
      ]);
    });

    test('a replay of everything takes a claimed lane back and goes through it from the beginning', async (scene) => {
      await scene.subscribe('listener', ['session:*']);
      const { id } = await scene.start('1');
      await scene.drain('listener');
      await scene.end(id);
      const claimed = await claimOne(scene);
      await scene.store.write('replay', { subscriber: 'listener', fromSeq: 0 });
      expect(await scene.ack(claimed)).toBe(false);
      expect((await scene.drain('listener')).map(({ type }) => type)).toEqual(['session:start', 'session:end']);
    });

    test('of nobody cannot be replayed', async (scene) => {
      const replay = scene.store.write('replay', { subscriber: 'nobody', fromSeq: null });
      expect(await codeOf(replay)).toBe('subscriber_not_found');
    });
  });

  describe('the status of a subscriber', () => {
    test('tells what waits, since when, and what failed', async (scene) => {
      await scene.subscribe('listener', ['session:*']);
      const createdAt = scene.clock.now();
      const quiet = { name: 'listener', patterns: ['session:*'], createdAt, lanes: 0, lag: 0, oldestPendingAt: null };
      const none = { failures: 0, deadLetters: 0, lastError: null };
      const status = async () => (await scene.store.read('listSubscribers', {}))[0];
      expect(await status()).toEqual({ ...quiet, ...none });
      await scene.start('1');
      scene.clock.advance(SECOND);
      const { id } = await scene.start('2');
      await scene.end(id);
      expect(await status()).toEqual({ ...quiet, ...none, lanes: 2, lag: 3, oldestPendingAt: createdAt });
      const [first, second] = (await scene.claim('listener')).toSorted((a, b) => (a.key < b.key ? -1 : 1));
      if (first) await scene.fail(first, { error: 'slow' });
      expect(await status()).toMatchObject({ lanes: 2, lag: 3, failures: 1, deadLetters: 0, lastError: 'slow' });
      if (second) await scene.fail(second, { dead: true, error: 'broken' });
      expect(await status()).toMatchObject({ lanes: 2, lag: 2, failures: 1, deadLetters: 1 });
    });
  });
}

async function claimOne(scene: Scene, subscriber = 'listener'): Promise<EventLane> {
  const lanes = await scene.claim(subscriber);
  if (lanes.length !== 1 || lanes[0] === undefined) throw new Error(`${lanes.length} lanes were due, not 1`);
  return lanes[0];
}

function letters(scene: Scene) {
  return scene.store.read('listDeadLetters', { subscriber: null, limit: 10 });
}
