import { describe, expect } from 'vitest';
import type { DeliveryOutcome } from '../../../src/store/transactions/deliveries.ts';
import { codeOf } from './code-of.ts';
import { MINUTE, type Open, type Scene, SECOND, sceneTests } from './scene.ts';

/** Replies on their way out. */
export function deliveriesContract(open: Open): void {
  const test = sceneTests(open);

  describe('a reply', () => {
    test('is written with the end of its turn, claimed, sent and told', async (scene) => {
      const told: boolean[] = [];
      scene.store.onCommit(({ deliveries }) => told.push(deliveries));
      const { session, turn } = await reply(scene, '42', ['dlv-1']);
      expect(told.at(-1)).toBe(true);
      const claimed = await claim(scene);
      expect(claimed).toEqual([
        {
          id: 'dlv-1',
          sessionId: session.id,
          turnId: turn.id,
          platform: 'telegram',
          target: { chat: '42' },
          text: 'text of dlv-1',
          attempts: 1,
          shape: null,
          possibleDuplicate: false,
        },
      ]);
      expect(await claim(scene)).toEqual([]);
      await settle(scene, 'dlv-1', { state: 'sent' });
      expect(await scene.events(null, ['delivery:*'])).toEqual([
        {
          id: 'dlv-1:sent',
          session_seq: null,
          type: 'delivery:sent',
          at: new Date(scene.clock.now()).toISOString(),
          session_id: session.id,
          session_key: session.key,
          platform: 'telegram',
          user_id: 'ada',
          kind: 'chat',
          instance: 'one',
          delivery_id: 'dlv-1',
          attempts: 1,
          error: null,
        },
      ]);
      scene.clock.advance(10 * MINUTE);
      expect(await claim(scene)).toEqual([]);
    });

    test('is counted by its platform until it is settled, which says how long that took', async (scene) => {
      const counted = () => scene.store.read('countDeliveries', {});
      await reply(scene, '42', ['dlv-1', 'dlv-2', 'dlv-3']);
      expect(await counted()).toEqual({ telegram: 3 });
      await claim(scene);
      expect(await settle(scene, 'dlv-1', { state: 'retry', afterMs: SECOND, error: 'no route' })).toBeNull();
      expect(await counted()).toEqual({ telegram: 3 });
      scene.clock.advance(5 * SECOND);
      expect(await settle(scene, 'dlv-2', { state: 'sent' })).toEqual({ ms: 5 * SECOND });
      expect(await settle(scene, 'dlv-2', { state: 'sent' })).toBeNull();
      expect(await settle(scene, 'dlv-3', { state: 'failed', error: 'gone' })).toEqual({ ms: 5 * SECOND });
      expect(await counted()).toEqual({ telegram: 1 });
    });

    test('that could not be sent is due again later, and its attempts are counted', async (scene) => {
      await reply(scene, '42', ['dlv-1']);
      await claim(scene);
      await settle(scene, 'dlv-1', { state: 'retry', afterMs: 5 * SECOND, error: 'no route' });
      scene.clock.advance(5 * SECOND - 1);
      expect(await claim(scene)).toEqual([]);
      scene.clock.advance(1);
      expect(await claim(scene)).toMatchObject([{ id: 'dlv-1', attempts: 2, possibleDuplicate: false }]);
      await settle(scene, 'dlv-1', { state: 'failed', error: 'blocked by the user' });
      expect(await scene.events(null, ['delivery:*'])).toMatchObject([
        { type: 'delivery:failed', delivery_id: 'dlv-1', attempts: 2, error: 'blocked by the user', session_seq: null },
      ]);
      scene.clock.advance(10 * MINUTE);
      expect(await claim(scene)).toEqual([]);
    });

    test('of an older turn goes before a newer one, and the parts of one reply in their order', async (scene) => {
      await reply(scene, '1', ['dlv-z1', 'dlv-z2']);
      scene.clock.advance(SECOND);
      await reply(scene, '2', ['dlv-a1', 'dlv-a2', 'dlv-a3']);
      const claimed = await claim(scene, 4);
      expect(claimed.map(({ id }) => id)).toEqual(['dlv-z1', 'dlv-z2', 'dlv-a1', 'dlv-a2']);
      expect(await claim(scene, 4)).toEqual([]);
      for (const id of ['dlv-a1', 'dlv-a2']) await settle(scene, id, { state: 'sent' });
      expect((await claim(scene, 4)).map(({ id }) => id)).toEqual(['dlv-a3']);
    });

    test('that has to wait holds back what its session sends behind it, and nothing else', async (scene) => {
      await reply(scene, '1', ['dlv-1']);
      await claim(scene);
      await settle(scene, 'dlv-1', { state: 'retry', afterMs: SECOND, error: 'later' });
      await reply(scene, '1', ['dlv-2']);
      await reply(scene, '2', ['dlv-3']);
      expect((await claim(scene)).map(({ id }) => id)).toEqual(['dlv-3']);
      scene.clock.advance(SECOND);
      expect((await claim(scene)).map(({ id }) => id)).toEqual(['dlv-1', 'dlv-2']);
    });

    test('whose sender died is due again and marked as a possible duplicate', async (scene) => {
      const dying = await scene.joinedBy('dying');
      await reply(scene, '42', ['dlv-1']);
      expect(await claim(dying)).toHaveLength(1);
      expect(await claim(scene)).toEqual([]);
      await scene.reap(['dying']);
      expect(await claim(scene)).toMatchObject([{ id: 'dlv-1', attempts: 2, possibleDuplicate: true }]);
      expect(await codeOf(settle(dying, 'dlv-1', { state: 'sent' }))).toBe('lease_lost');
    });

    test('that was given to somebody else is settled by them alone', async (scene) => {
      const slow = await scene.joinedBy('slow');
      await reply(scene, '42', ['dlv-1']);
      await claim(slow);
      const { deliveries } = await scene.store.read('heldBy', { instance: 'slow' });
      expect(deliveries).toEqual(['dlv-1']);
      await slow.store.write('reconcile', { context: slow.context(), sessions: [], deliveries });
      expect(await claim(scene)).toMatchObject([{ id: 'dlv-1', possibleDuplicate: true }]);
      await settle(slow, 'dlv-1', { state: 'failed', error: 'late' });
      expect(await scene.events(null, ['delivery:*'])).toEqual([]);
      await settle(scene, 'dlv-1', { state: 'sent' });
      expect(await scene.events(null, ['delivery:*'])).toMatchObject([{ type: 'delivery:sent', attempts: 2 }]);
    });

    test('is sent also after its session ended, and is told after the end without a number', async (scene) => {
      const { session } = await reply(scene, '42', ['dlv-1']);
      await scene.end(session.id);
      await claim(scene);
      await settle(scene, 'dlv-1', { state: 'sent' });
      const events = await scene.events(session.id);
      expect(events.slice(-2)).toMatchObject([{ type: 'session:end' }, { type: 'delivery:sent', session_seq: null }]);
    });

    test('that nobody knows cannot be settled', async (scene) => {
      expect(await codeOf(settle(scene, 'dlv-unknown', { state: 'sent' }))).toBe('bad_input');
    });

    test('is claimed by one of many who ask at once', async (scene) => {
      const ids = Array.from({ length: 20 }, (_, i) => `dlv-${i}`);
      for (const id of ids) await reply(scene, id, [id]);
      const others = [scene, await scene.joinedBy('two'), await scene.joinedBy('three')];
      const claims = await Promise.all(others.flatMap((other) => [claim(other, 5), claim(other, 5)]));
      const claimed = claims.flat().map(({ id }) => id);
      for (let rest = await claim(scene); rest.length > 0; rest = await claim(scene)) {
        claimed.push(...rest.map(({ id }) => id));
      }
      expect(claimed.toSorted()).toEqual(ids.toSorted());
    });
  });
}

async function reply(scene: Scene, chat: string, ids: readonly string[]) {
  const asked = await scene.ask(chat);
  const deliveries = ids.map((id) => ({ id, platform: 'telegram', target: { chat }, text: `text of ${id}` }));
  await scene.finish(asked, {}, { deliveries });
  return asked;
}

function claim(scene: Scene, limit = 100) {
  return scene.store.write('claimDeliveries', { context: scene.context(), platforms: ['telegram'], limit });
}

function settle(scene: Scene, deliveryId: string, outcome: DeliveryOutcome): Promise<{ ms: number } | null> {
  return scene.store.write('settleDelivery', { context: scene.context(), deliveryId, outcome });
}
