import { describe, expect } from 'vitest';
import { isUnreadable } from '../../../src/store/table.ts';
import type { ReplyLane } from '../../../src/store/transactions/deliveries.ts';
import { codeOf } from './code-of.ts';
import { MINUTE, type Open, type Scene, SECOND, sceneTests } from './scene.ts';

/** Replies on their way out. */
export function deliveriesContract(open: Open): void {
  const test = sceneTests(open);

  describe('a reply', () => {
    test('is written with the end of its turn, claimed, sent and logged', async (scene) => {
      const queues: string[][] = [];
      scene.store.onCommit((effects) => queues.push([...effects.queues]));
      const { session, turn } = await reply(scene, '42', ['dlv-1']);
      expect(queues.at(-1)).toEqual(['replies/telegram']);
      const lane = await claimOne(scene);
      expect(lane).toMatchObject({ key: session.key, attempts: 0, waits: 0, interrupted: false });
      expect(lane.deliveries).toEqual([
        {
          id: 'dlv-1',
          sessionId: session.id,
          turnId: turn.id,
          platform: 'telegram',
          target: { chat: '42' },
          text: 'text of dlv-1',
          shape: null,
        },
      ]);
      expect(await scene.claimReplies()).toEqual([]);
      await scene.settleReply(lane, { state: 'sent' });
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
      expect(await scene.claimReplies()).toEqual([]);
      expect(await scene.raw("SELECT * FROM lanes WHERE queue = 'replies/telegram'")).toEqual([]);
    });

    test('is counted by its platform until it is settled, which says how long that took', async (scene) => {
      const counted = () => scene.store.read('countDeliveries', {});
      await reply(scene, '42', ['dlv-1', 'dlv-2']);
      expect(await counted()).toEqual({ telegram: 2 });
      expect(await scene.store.read('oldestDelivery', {})).toBe(0);
      const lane = await claimOne(scene);
      scene.clock.advance(5 * SECOND);
      expect(await scene.store.read('oldestDelivery', {})).toBe(5 * SECOND);
      expect(await scene.settleReply(lane, { state: 'sent' }, { more: true })).toEqual({ ms: 5 * SECOND });
      expect(await counted()).toEqual({ telegram: 1 });
      const second = { delivery: lane.deliveries[1], attempts: 1 };
      expect(await scene.settleReply(lane, { state: 'failed', error: 'gone' }, second)).toEqual({ ms: 5 * SECOND });
      expect(await counted()).toEqual({});
      expect(await scene.store.read('oldestDelivery', {})).toBeNull();
    });

    test('has the age of the oldest of all that have not arrived, whichever was written last', async (scene) => {
      await reply(scene, '42', ['dlv-1']);
      scene.clock.advance(5 * SECOND);
      await reply(scene, '43', ['dlv-2']);
      expect(await scene.store.read('oldestDelivery', {})).toBe(5 * SECOND);
    });

    test('that is settled twice, because the answer was lost, is settled and logged once', async (scene) => {
      await reply(scene, '42', ['dlv-1', 'dlv-2']);
      const lane = await claimOne(scene);
      await scene.settleReply(lane, { state: 'sent' }, { more: true });
      expect(await scene.settleReply(lane, { state: 'sent' }, { more: true })).toBeNull();
      expect(await scene.settleReply(lane, { state: 'failed', error: 'no' }, { more: true })).toBeNull();
      expect(await scene.events(null, ['delivery:*'])).toMatchObject([{ type: 'delivery:sent', delivery_id: 'dlv-1' }]);
    });

    test('that was refused is due again later, and its attempts are counted', async (scene) => {
      await reply(scene, '42', ['dlv-1']);
      await scene.settleReply(await claimOne(scene), retry(5 * SECOND));
      scene.clock.advance(5 * SECOND - 1);
      expect(await scene.claimReplies()).toEqual([]);
      scene.clock.advance(1);
      const again = await claimOne(scene);
      expect(again).toMatchObject({ attempts: 1, waits: 0, interrupted: false });
      await scene.settleReply(again, { state: 'failed', error: 'blocked by the user' });
      expect(await scene.events(null, ['delivery:*'])).toMatchObject([
        { type: 'delivery:failed', delivery_id: 'dlv-1', attempts: 2, error: 'blocked by the user', session_seq: null },
      ]);
      scene.clock.advance(10 * MINUTE);
      expect(await scene.claimReplies()).toEqual([]);
    });

    test('waits, uncounted, while its platform cannot be reached', async (scene) => {
      await reply(scene, '42', ['dlv-1']);
      for (let waits = 0; waits < 20; waits++) {
        const lane = await claimOne(scene);
        expect(lane).toMatchObject({ attempts: 0, waits });
        await scene.settleReply(lane, retry(SECOND, false), { attempts: 0, waits: waits + 1 });
        scene.clock.advance(SECOND);
      }
    });

    test('leaves in the order it was written in, also when the clock is set back', async (scene) => {
      await reply(scene, '1', ['dlv-z1', 'dlv-z2']);
      scene.clock.advance(-MINUTE);
      await reply(scene, '1', ['dlv-a1', 'dlv-a2', 'dlv-a3']);
      const lane = await claimOne(scene, { repliesPerLane: 4 });
      expect(idsOf(lane)).toEqual(['dlv-z1', 'dlv-z2', 'dlv-a1', 'dlv-a2']);
      for (const [i, delivery] of lane.deliveries.entries()) {
        await scene.settleReply(lane, { state: 'sent' }, { delivery, more: i < 3, attempts: 1 });
      }
      expect(idsOf(await claimOne(scene))).toEqual(['dlv-a3']);
    });

    test('that has to wait holds back what its conversation sends behind it, and nothing else', async (scene) => {
      await reply(scene, '1', ['dlv-1']);
      await scene.settleReply(await claimOne(scene), retry(SECOND));
      await reply(scene, '1', ['dlv-2']);
      await reply(scene, '2', ['dlv-3']);
      expect(idsOf(await claimOne(scene))).toEqual(['dlv-3']);
      scene.clock.advance(SECOND);
      expect(idsOf(await claimOne(scene))).toEqual(['dlv-1', 'dlv-2']);
    });

    test('that is being sent by one instance is not taken by another, nor what comes behind it', async (scene) => {
      const other = await scene.joinedBy('two');
      await reply(scene, '1', ['dlv-1', 'dlv-2', 'dlv-3']);
      const lane = await claimOne(scene, { repliesPerLane: 1 });
      await reply(scene, '1', ['dlv-4']);
      expect(await other.claimReplies()).toEqual([]);
      await scene.settleReply(lane, { state: 'sent' });
      expect(idsOf(await claimOne(other))).toEqual(['dlv-2', 'dlv-3', 'dlv-4']);
    });

    test('whose sender died is due again, and it is known that it may have arrived', async (scene) => {
      const dying = await scene.joinedBy('dying');
      await reply(scene, '42', ['dlv-1', 'dlv-2']);
      const held = await claimOne(dying);
      expect(await scene.claimReplies()).toEqual([]);
      await scene.reap(['dying']);
      const lane = await claimOne(scene);
      expect(lane.interrupted).toBe(true);
      expect(await codeOf(dying.settleReply(held, { state: 'sent' }))).toBe('lease_lost');
      await scene.settleReply(lane, retry(0));
      const again = await claimOne(scene);
      expect(again.interrupted).toBe(true);
      await scene.settleReply(again, { state: 'sent' });
      expect(await claimOne(scene)).toMatchObject({ interrupted: false, deliveries: [{ id: 'dlv-2' }] });
    });

    test('whose row is damaged keeps none of the others from being sent, and is passed over with an event', async (scene) => {
      const { session } = await reply(scene, '1', ['dlv-1', 'dlv-2']);
      scene.clock.advance(SECOND);
      await reply(scene, '2', ['dlv-3']);
      await scene.raw("UPDATE deliveries SET target = '{' WHERE id = ?", 'dlv-1');
      const [lane, other] = await scene.claimReplies();
      expect([idsOf(lane!), idsOf(other!)]).toEqual([['dlv-1', 'dlv-2'], ['dlv-3']]);
      expect(lane!.deliveries.map(({ target }) => isUnreadable(target))).toEqual([true, false]);
      await scene.settleReply(lane!, { state: 'set_aside', error: 'its row cannot be read', notice: null });
      expect((await scene.events(session.id)).slice(-2)).toMatchObject([
        { type: 'delivery:failed', delivery_id: 'dlv-1' },
        { type: 'work:set_aside', work: 'delivery', id: 'dlv-1', error: 'its row cannot be read' },
      ]);
      expect(idsOf(await claimOne(scene))).toEqual(['dlv-2']);
    });

    test('whose target is JSON of another kind cannot be read either', async (scene) => {
      const damage = ['5', '"chat"', '[]', 'null'];
      const ids = damage.map((_, i) => `dlv-${i}`);
      await reply(scene, '1', ids);
      for (const [i, id] of ids.entries()) {
        await scene.raw('UPDATE deliveries SET target = ? WHERE id = ?', damage[i] ?? '', id);
      }
      const { deliveries } = await claimOne(scene);
      expect(deliveries.map(({ target }) => isUnreadable(target))).toEqual([true, true, true, true]);
    });

    test('with which three processes died is told apart from its neighbours and not tried again', async (scene) => {
      await reply(scene, '1', ['dlv-1']);
      scene.clock.advance(SECOND);
      await reply(scene, '2', ['dlv-2']);
      const poisoned: boolean[][] = [];
      for (const name of ['first', 'second', 'third', 'fourth']) {
        const dying = await scene.joinedBy(name);
        const lanes = await dying.claimReplies();
        poisoned.push(lanes.map((lane) => lane.poisoned));
        await scene.reap([name]);
      }
      // From the third on one is taken at a time: the first of them is the suspect.
      expect(poisoned).toEqual([[false, false], [false, false], [false], [true]]);
      const suspect = await claimOne(scene);
      expect(suspect.poisoned).toBe(true);
      await scene.settleReply(suspect, { state: 'set_aside', error: 'it kills', notice: null });
      expect(await claimOne(scene)).toMatchObject({ poisoned: false, deliveries: [{ id: 'dlv-2' }] });
    });

    test('that was cut by three stops in order is tried again each time', async (scene) => {
      await reply(scene, '1', ['dlv-1']);
      for (const name of ['first', 'second', 'third', 'fourth']) {
        const stopping = await scene.joinedBy(name);
        expect((await claimOne(stopping)).poisoned).toBe(false);
        await stopping.store.write('stopInstance', { instance: name });
      }
      expect(await claimOne(scene)).toMatchObject({ poisoned: false, interrupted: true });
    });

    test('that was given to another instance is settled by that one alone', async (scene) => {
      const slow = await scene.joinedBy('slow');
      await reply(scene, '42', ['dlv-1']);
      const held = await claimOne(slow);
      const { claims } = await scene.store.read('heldBy', { instance: 'slow' });
      expect(claims).toMatchObject([{ queue: 'replies/telegram', token: held.token }]);
      await slow.store.write('reconcile', { context: slow.context(), sessions: [], claims });
      const lane = await claimOne(scene);
      expect(lane.interrupted).toBe(true);
      await slow.settleReply(held, { state: 'failed', error: 'late' });
      await slow.settleReply(held, retry(MINUTE));
      expect(await scene.events(null, ['delivery:*'])).toEqual([]);
      await scene.settleReply(lane, { state: 'sent' });
      expect(await scene.events(null, ['delivery:*'])).toMatchObject([{ type: 'delivery:sent', attempts: 1 }]);
    });

    test('is sent also after its session ended, and is logged after the end without a number', async (scene) => {
      const { session } = await reply(scene, '42', ['dlv-1']);
      await scene.end(session.id);
      await scene.settleReply(await claimOne(scene), { state: 'sent' });
      const events = await scene.events(session.id);
      expect(events.slice(-2)).toMatchObject([{ type: 'session:end' }, { type: 'delivery:sent', session_seq: null }]);
    });

    test('that does not exist cannot be settled', async (scene) => {
      await reply(scene, '42', ['dlv-1']);
      const lane = await claimOne(scene);
      const [known] = lane.deliveries;
      if (known === undefined) throw new TypeError('nothing was claimed');
      const delivery = { ...known, id: 'dlv-unknown' };
      expect(await codeOf(scene.settleReply(lane, { state: 'sent' }, { delivery }))).toBe('bad_input');
    });

    test('is claimed by one of many who ask at once', async (scene) => {
      const ids = Array.from({ length: 20 }, (_, i) => `dlv-${i}`);
      for (const id of ids) await reply(scene, id, [id]);
      const others = [scene, await scene.joinedBy('two'), await scene.joinedBy('three')];
      const ask = (other: Scene) => other.claimReplies({ limit: 5 });
      const lanes = (await Promise.all(others.flatMap((other) => [ask(other), ask(other)]))).flat();
      for (let rest = await ask(scene); rest.length > 0; rest = await ask(scene)) lanes.push(...rest);
      expect(lanes.flatMap(idsOf).toSorted()).toEqual(ids.toSorted());
    });

    test('of a lane that is given back untried is due at once, and a lane without replies goes', async (scene) => {
      const { session } = await reply(scene, '42', ['dlv-1']);
      await release(scene, await claimOne(scene));
      const lane = await claimOne(scene);
      expect(lane).toMatchObject({ attempts: 0, interrupted: false });
      await scene.end(session.id);
      await scene.store.write('deleteSession', { context: scene.context(), sessionId: session.id, trigger: 'cli' });
      await release(scene, lane);
      expect(await scene.raw("SELECT * FROM lanes WHERE queue = 'replies/telegram'")).toEqual([]);
    });
  });
}

function retry(afterMs: number, counts = true) {
  return { state: 'retry', afterMs, error: 'not now', counts } as const;
}

function idsOf({ deliveries }: ReplyLane): string[] {
  return deliveries.map(({ id }) => id);
}

function release(scene: Scene, { key, token, attempts, waits }: ReplyLane): Promise<void> {
  const args = { platform: 'telegram', key, token, attempts, waits };
  return scene.store.write('releaseReplies', { context: scene.context(), ...args });
}

async function claimOne(scene: Scene, rest: { repliesPerLane?: number } = {}): Promise<ReplyLane> {
  const lanes = await scene.claimReplies(rest);
  if (lanes.length !== 1 || lanes[0] === undefined) throw new Error(`${lanes.length} lanes were due, not 1`);
  return lanes[0];
}

async function reply(scene: Scene, chat: string, ids: readonly string[]) {
  const asked = await scene.ask(chat);
  const deliveries = ids.map((id) => ({ id, platform: 'telegram', target: { chat }, text: `text of ${id}` }));
  await scene.finish(asked, {}, { deliveries });
  return asked;
}
