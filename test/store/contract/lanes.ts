import { describe, expect } from 'vitest';
import type { EventLane } from '../../../src/store/transactions/event-queue.ts';
import { MINUTE, type Open, type Scene, SECOND, sceneTests } from './scene.ts';

/** How events reach a subscriber: in order per conversation, one claim at a time, acknowledged by its token. */
export function lanesContract(open: Open): void {
  const test = sceneTests(open);

  describe('a lane', () => {
    test('keeps one conversation in order over the end of a session and the start of the next', async (scene) => {
      await scene.subscribe('listener');
      const asked = await scene.ask('1');
      const { session } = await scene.reset('1', { command: 'new', args: '' });
      await scene.end(session.id);
      const heard = await scene.drain('listener', { eventsPerLane: 2 });
      const names = { [asked.session.id]: 'old', [session.id]: 'new' };
      expect(heard.map(({ session_id, type }) => `${names[session_id ?? '']} ${type}`)).toEqual([
        'old session:start',
        'old agent:start',
        'old command:new',
        'old agent:end',
        'old session:end',
        'new session:start',
        'new session:reset',
        'new session:end',
      ]);
      expect(heard).toEqual(await scene.events());
      expect(heard.some((event) => 'seq' in event)).toBe(false);
    });

    test('is held by one claim at a time, and what happens meanwhile comes after it', async (scene) => {
      await scene.subscribe('listener');
      const { id } = await scene.start('1');
      const lane = await claimOne(scene);
      const other = await scene.joinedBy('two');
      await scene.end(id);
      expect(await other.claim('listener')).toEqual([]);
      expect(typesOf(lane)).toEqual(['session:start']);
      expect(await scene.ack(lane)).toBe(true);
      const next = await claimOne(other);
      expect(typesOf(next)).toEqual(['session:end']);
      expect(await other.ack(next)).toBe(true);
      expect(await scene.claim('listener')).toEqual([]);
    });

    test('does not wait for another conversation', async (scene) => {
      await scene.subscribe('listener');
      await scene.start('1');
      await claimOne(scene);
      await scene.start('2');
      expect((await claimOne(scene)).key).toBe('agent:main:telegram:dm:2');
    });

    test('is not shared between subscribers', async (scene) => {
      for (const name of ['first', 'second']) await scene.subscribe(name);
      await scene.start('1');
      await scene.claim('first');
      expect(await scene.drain('second')).toHaveLength(1);
    });

    test('that its living instance does not know of is released, and a late acknowledgement is ignored', async (scene) => {
      await scene.subscribe('listener');
      await scene.start('1');
      const slow = await claimOne(scene);
      const other = await scene.joinedBy('two');
      scene.clock.advance(10 * MINUTE);
      expect(await other.claim('listener')).toEqual([]);
      const { claims } = await scene.store.read('heldBy', { instance: 'one' });
      expect(claims).toEqual([{ queue: slow.queue, key: slow.key, token: slow.token }]);
      await scene.store.write('reconcile', { context: scene.context(), sessions: [], claims });
      const lane = await claimOne(other);
      expect(lane.events).toEqual(slow.events);
      expect(await scene.ack(slow)).toBe(false);
      expect(await scene.fail(slow, { dead: true })).toBe(false);
      expect(await scene.claim('listener')).toEqual([]);
      expect(await other.ack(lane)).toBe(true);
      expect(await scene.store.read('listDeadLetters', { subscriber: null, limit: 10 })).toEqual([]);
      expect(await scene.events(null, ['hook:failed'])).toEqual([]);
    });

    test('that was claimed and acknowledged once cannot be acknowledged again', async (scene) => {
      await scene.subscribe('listener');
      const { id } = await scene.start('1');
      const lane = await claimOne(scene);
      await scene.ack(lane);
      await scene.end(id);
      expect(await scene.ack(lane, lane.upTo + 100)).toBe(false);
      expect(typesOf(await claimOne(scene))).toEqual(['session:end']);
    });

    test('is free at once when the instance that claimed it dies or leaves', async (scene) => {
      await scene.subscribe('listener', ['session:*']);
      await scene.start('1');
      const dying = await scene.joinedBy('dying');
      const lane = await claimOne(dying);
      await scene.reap(['dying']);
      expect((await claimOne(scene)).events).toEqual(lane.events);
      const leaving = await scene.joinedBy('leaving');
      await scene.start('2');
      await claimOne(leaving);
      await leaving.store.write('stopInstance', { instance: 'leaving' });
      expect((await claimOne(scene)).key).toBe('agent:main:telegram:dm:2');
    });

    test('moves on by as much as was acknowledged', async (scene) => {
      await scene.subscribe('listener');
      await scene.ask('1');
      const lane = await claimOne(scene);
      expect(typesOf(lane)).toEqual(['session:start', 'agent:start']);
      await scene.ack(lane, lane.events[0]?.no ?? 0);
      expect(typesOf(await claimOne(scene))).toEqual(['agent:start']);
    });

    test('passes over what its subscriber does not listen to', async (scene) => {
      await scene.subscribe('listener', ['session:start', 'session:end']);
      const { session } = await scene.ask('1');
      await scene.end(session.id);
      const lanes: string[][] = [];
      for (let lane = await scene.claim('listener', { eventsPerLane: 1 }); lane[0]; ) {
        lanes.push(typesOf(lane[0]));
        await scene.ack(lane[0]);
        lane = await scene.claim('listener', { eventsPerLane: 1 });
      }
      expect(lanes).toEqual([['session:start'], [], [], ['session:end']]);
    });

    test('is told of with the commit that filled it', async (scene) => {
      await scene.subscribe('ends', ['session:end']);
      await scene.subscribe('all');
      const told: string[][] = [];
      scene.store.onCommit(({ queues }) => told.push([...queues].toSorted()));
      const { id } = await scene.start('1');
      await scene.end(id);
      expect(told).toEqual([['events/all'], ['events/all', 'events/ends']]);
    });

    test('outlives a restart', async (scene) => {
      await scene.subscribe('listener');
      await scene.start('1');
      await scene.reopen();
      expect(await scene.drain('listener')).toHaveLength(1);
    });

    test('of instance events goes in order like any other', async (scene) => {
      await scene.subscribe('listener');
      for (const name of ['startup', 'draining', 'shutdown'] as const) {
        const draft = { type: `gateway:${name}`, fields: { platforms: [], reason: null } } as const;
        await scene.store.write('announceInstance', { context: scene.context(), event: { id: `one:${name}`, draft } });
      }
      const heard = await scene.drain('listener', { eventsPerLane: 1 });
      expect(heard.map(({ id }) => id)).toEqual(['one:startup', 'one:draining', 'one:shutdown']);
    });
  });

  describe('a claim', () => {
    test('takes as many lanes as it asks for, the longest waiting first', async (scene) => {
      await scene.subscribe('listener');
      for (const chat of ['1', '2', '3']) {
        await scene.start(chat);
        scene.clock.advance(SECOND);
      }
      const first = await scene.claim('listener', { limit: 2 });
      expect(first.map(({ key }) => key.at(-1)).toSorted()).toEqual(['1', '2']);
      expect((await scene.claim('listener', { limit: 2 })).map(({ key }) => key.at(-1))).toEqual(['3']);
    });

    test('lets failing lanes take no more than their share', async (scene) => {
      await scene.subscribe('listener');
      for (const chat of ['1', '2', '3', '4']) await scene.start(chat);
      for (const lane of await scene.claim('listener')) await scene.fail(lane);
      scene.clock.advance(SECOND);
      for (const chat of ['5', '6']) await scene.start(chat);
      const lanes = await scene.claim('listener', { limit: 4, retries: 1 });
      expect(lanes.map(({ key }) => key.at(-1)).filter((chat) => chat === '5' || chat === '6')).toHaveLength(2);
      expect(lanes).toHaveLength(3);
    });

    test('says when the next lane is due', async (scene) => {
      await scene.subscribe('listener');
      const ask = async () => {
        const args = {
          ...scene.claimOf('events/listener'),
          limit: 1,
          retries: 1,
          subscriber: 'listener',
          eventsPerLane: 1,
        };
        return scene.store.write('claimEvents', args);
      };
      expect(await ask()).toEqual({ lanes: [], nextDueInMs: null });
      await scene.start('1');
      const { lanes } = await ask();
      if (lanes[0]) await scene.fail(lanes[0], { retryInMs: 30 * SECOND });
      scene.clock.advance(10 * SECOND);
      expect(await ask()).toEqual({ lanes: [], nextDueInMs: 20 * SECOND });
    });

    test('whose answer was lost is asked for again and gets the same', async (scene) => {
      await scene.subscribe('listener');
      for (const chat of ['1', '2']) await scene.start(chat);
      const token = 'token-lost';
      const first = await scene.claim('listener', { token });
      expect(first).toHaveLength(2);
      expect(await scene.claim('listener', { token, again: true })).toEqual(first);
      expect(await scene.claim('listener')).toEqual([]);
      for (const lane of first) expect(await scene.ack(lane)).toBe(true);
      expect(await scene.claim('listener')).toEqual([]);
    });

    test('of a subscriber that does not exist takes nothing', async (scene) => {
      await scene.start('1');
      expect(await scene.claim('nobody')).toEqual([]);
    });

    test('by many at once gives every event to one of them', async (scene) => {
      await scene.subscribe('listener');
      await Promise.all(Array.from({ length: 30 }, (_, i) => scene.start(`${i}`)));
      const others = [scene, await scene.joinedBy('two'), await scene.joinedBy('three')];
      const heard = await Promise.all(others.map((other) => other.drain('listener', { limit: 3 })));
      const ids = heard.flat().map(({ id }) => id);
      expect(new Set(ids).size).toBe(30);
      expect(ids).toHaveLength(30);
    });
  });
}

function typesOf(lane: EventLane): string[] {
  return lane.events.map(({ event }) => event.type);
}

async function claimOne(scene: Scene): Promise<EventLane> {
  const lanes = await scene.claim('listener');
  if (lanes.length !== 1 || lanes[0] === undefined) throw new Error(`${lanes.length} lanes were due, not 1`);
  return lanes[0];
}
