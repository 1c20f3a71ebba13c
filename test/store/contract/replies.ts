import { describe, expect } from 'vitest';
import type { ReplyLane } from '../../../src/store/transactions/deliveries.ts';
import { codeOf } from './code-of.ts';
import { MINUTE, type Open, type Scene, SECOND, sceneTests } from './scene.ts';

const PLATFORM = 'telegram';

/** What a reply needs of the message it answers, replies that came too late, and those that people watch growing. */
export function repliesContract(open: Open): void {
  const test = sceneTests(open);

  describe('what is kept of a message so that it can be answered', () => {
    test('is read by its turn, and the newest of a conversation by its key, across sessions', async (scene) => {
      const first = await scene.ask('42', 'one', { reply: { messageId: '1', until: 5 } });
      await scene.finish(first);
      await scene.end(first.session.id);
      const second = await scene.ask('42', 'two');
      const read = (turnId: string) => scene.store.read('turnReply', { turnId });
      expect(await read(first.turn.id)).toEqual({ messageId: '1', until: 5 });
      expect(await read(second.turn.id)).toBeNull();
      const latest = () => scene.store.read('latestReply', { sessionKey: first.session.key });
      expect(await latest()).toEqual({ messageId: '1', until: 5 });
      await scene.finish(second);
      scene.clock.advance(SECOND);
      await scene.ask('42', 'three', { reply: { messageId: '3' } });
      expect(await latest()).toEqual({ messageId: '3' });
      expect(await scene.store.read('latestReply', { sessionKey: 'agent:main:telegram:dm:nobody' })).toBeNull();
    });

    test('is that of the last piece when messages become one', async (scene) => {
      const running = await scene.ask('42', 'busy');
      const into = await scene.say('42', 'one', { reply: { messageId: '1' } });
      const piece = await scene.say('42', 'two', { reply: { messageId: '2' } });
      await scene.store.write('joinTurns', {
        ...{ context: scene.context(), sessionId: running.session.id, response: 'joined' },
        ...{ into: into.turn.id, turnIds: [piece.turn.id] },
      });
      expect(await scene.store.read('turnReply', { turnId: into.turn.id })).toEqual({ messageId: '2' });
    });

    test('that is damaged is nothing', async (scene) => {
      const { turn } = await scene.ask('42', 'one', { reply: { messageId: '1' } });
      await scene.raw("UPDATE turns SET reply = '[' WHERE id = ?", turn.id);
      expect(await scene.store.read('turnReply', { turnId: turn.id })).toBeNull();
    });
  });

  describe('a reply whose outcome is unknown', () => {
    test('is due again, and it is known that it may have arrived until it is settled', async (scene) => {
      await reply(scene, '42', ['dlv-1', 'dlv-2']);
      await scene.settleReply(await claimOne(scene), unknown(SECOND));
      scene.clock.advance(SECOND);
      const again = await claimOne(scene);
      expect(again).toMatchObject({ interrupted: true, attempts: 1, poisoned: false });
      await scene.settleReply(again, { state: 'retry', afterMs: SECOND, error: 'refused', counts: true });
      scene.clock.advance(SECOND);
      const third = await claimOne(scene);
      expect(third.interrupted).toBe(true);
      await scene.settleReply(third, { state: 'sent' });
      expect(await claimOne(scene)).toMatchObject({ interrupted: false, deliveries: [{ id: 'dlv-2' }] });
    });

    test('again and again is never taken for one that kills processes', async (scene) => {
      await reply(scene, '42', ['dlv-1']);
      for (let attempt = 0; attempt < 6; attempt++) {
        const lane = await claimOne(scene);
        expect(lane.poisoned).toBe(false);
        await scene.settleReply(lane, unknown(SECOND));
        scene.clock.advance(SECOND);
      }
    });
  });

  describe('a reply that comes too late', () => {
    test('fails with its reason, and is on its way again when they write, marked and with their message', async (scene) => {
      const { session } = await reply(scene, '42', ['dlv-1', 'dlv-2', 'dlv-3'], { buttons: [], edit: '7' });
      const lane = await claimOne(scene);
      for (const [i, delivery] of lane.deliveries.entries()) {
        await scene.settleReply(lane, { state: 'held', error: 'the window is closed' }, { delivery, more: i < 2 });
      }
      expect(await scene.events(null, ['delivery:*'])).toMatchObject(
        ['dlv-1', 'dlv-2', 'dlv-3'].map((delivery_id) => ({
          ...{ type: 'delivery:failed', delivery_id, error: 'the window is closed', session_key: session.key },
        })),
      );
      expect(await scene.claimReplies()).toEqual([]);
      expect(await held(scene, session.key)).toBe(3);
      expect(await release(scene, session.id)).toBe(3);
      expect(await held(scene, session.key)).toBe(0);
      expect(await release(scene, session.id)).toBe(0);
      const again = await claimOne(scene);
      expect(again.deliveries.map(({ id }) => id)).toEqual(['dlv-1:again', 'dlv-2:again', 'dlv-3:again']);
      expect(again.deliveries[0]).toMatchObject({
        text: 'text of dlv-1',
        shape: { late: true, reply: { messageId: '9' }, buttons: [] },
      });
      expect(again.deliveries[0]?.shape).not.toHaveProperty('edit');
    });

    test('of more than twenty only the newest are sent, in their order', async (scene) => {
      const ids = Array.from({ length: 23 }, (_, i) => `dlv-${String(i).padStart(2, '0')}`);
      const { session } = await reply(scene, '42', ids);
      const lane = await claimOne(scene, 30);
      for (const [i, delivery] of lane.deliveries.entries()) {
        await scene.settleReply(lane, { state: 'held', error: 'late' }, { delivery, more: i < ids.length - 1 });
      }
      expect(await release(scene, session.id)).toBe(20);
      expect(await held(scene, session.key)).toBe(0);
      const again = await claimOne(scene, 30);
      expect(again.deliveries.map(({ id }) => id)).toEqual(ids.slice(3).map((id) => `${id}:again`));
    });

    test('of another conversation or platform stays where it is', async (scene) => {
      await reply(scene, '1', ['dlv-1']);
      await scene.settleReply(await claimOne(scene), { state: 'held', error: 'late' });
      const other = await scene.ask('2');
      expect(await release(scene, other.session.id)).toBe(0);
      expect(await scene.claimReplies()).toEqual([]);
    });
  });

  describe('a reply that was taken and did not arrive after all', () => {
    test('fails once, and waits for them if it was too late', async (scene) => {
      const { session } = await reply(scene, '42', ['dlv-1']);
      const fail = (isHeld: boolean) =>
        scene.store.write('failSent', {
          ...{ context: scene.context(), deliveryId: 'dlv-1', error: 'not deliverable', held: isHeld },
        });
      expect(await fail(true)).toBe(false);
      await scene.settleReply(await claimOne(scene), { state: 'sent', messageId: 'm1' });
      expect(await fail(true)).toBe(true);
      expect(await fail(true)).toBe(false);
      expect(await scene.events(null, ['delivery:*'])).toMatchObject([
        { type: 'delivery:sent' },
        { type: 'delivery:failed', delivery_id: 'dlv-1', error: 'not deliverable', attempts: 1 },
      ]);
      expect(await release(scene, session.id)).toBe(1);
    });
  });

  describe('a reply that people watch growing', () => {
    const handle = { stream: 'card-1' };
    const keep = (scene: Scene, turnId: string) =>
      scene.store.write('keepLiveReply', {
        ...{ context: scene.context(), turnId, platform: PLATFORM, target: { chat: '42' }, handle },
      });
    const abandoned = (scene: Scene) => scene.store.read('abandonedLiveReplies', { platform: PLATFORM, limit: 10 });

    test('is known to the process that goes on with its turn, and forgotten when its reply has left', async (scene) => {
      const asked = await scene.ask('42');
      await keep(scene, asked.turn.id);
      const find = () => scene.store.read('liveReplyOf', { turnId: asked.turn.id });
      expect(await find()).toMatchObject({ handle, target: { chat: '42' } });
      expect(await abandoned(scene)).toEqual([]);
      const deliveries = [{ id: 'dlv-1', platform: PLATFORM, target: { chat: '42' }, text: 'x', shape: handle }];
      await scene.finish(asked, {}, { deliveries });
      expect(await abandoned(scene)).toEqual([]);
      await scene.settleReply(await claimOne(scene), { state: 'sent' }, { live: asked.turn.id });
      expect(await find()).toBeNull();
    });

    test('whose turn ended without a reply is found by who ends it', async (scene) => {
      const asked = await scene.ask('42');
      await keep(scene, asked.turn.id);
      await scene.finish(asked, { outcome: 'interrupted', response: 'Stopped.' });
      expect(await abandoned(scene)).toMatchObject([{ turnId: asked.turn.id, handle, response: 'Stopped.' }]);
      await scene.store.write('forgetLiveReply', { turnId: asked.turn.id });
      expect(await abandoned(scene)).toEqual([]);
    });

    test('goes with a session that is deleted', async (scene) => {
      const asked = await scene.ask('42');
      await keep(scene, asked.turn.id);
      await scene.finish(asked);
      await scene.end(asked.session.id);
      const deletion = { context: scene.context(), sessionId: asked.session.id, trigger: 'cli' } as const;
      await scene.store.write('deleteSession', deletion);
      expect(await scene.raw('SELECT * FROM live_replies')).toEqual([]);
    });
  });

  describe('what a platform keeps for itself', () => {
    test('is the last under its name, of its own account, until it is forgotten', async (scene) => {
      const keep = (platform: string, value: string | null) =>
        scene.store.write('keepPlatformState', { context: scene.context(), platform, name: 'cursor', value });
      const read = (platform: string) => scene.store.read('platformState', { platform, name: 'cursor' });
      expect(await read('discord')).toBeNull();
      await keep('discord', '1');
      await keep('discord', '2');
      await keep('discord@work', '9');
      expect([await read('discord'), await read('discord@work')]).toEqual(['2', '9']);
      await keep('discord', null);
      expect(await read('discord')).toBeNull();
    });

    test('is not changed by a process that has lost its lease', async (scene) => {
      const slow = await scene.joinedBy('slow');
      await scene.reap(['slow']);
      const context = slow.context();
      const kept = slow.store.write('keepPlatformState', { context, platform: 'qq', name: 'cursor', value: '1' });
      expect(await codeOf(kept)).toBe('lease_lost');
      scene.clock.advance(MINUTE);
      expect(await scene.store.read('platformState', { platform: 'qq', name: 'cursor' })).toBeNull();
    });
  });
}

function unknown(afterMs: number) {
  return { state: 'retry', afterMs, error: 'no answer', counts: true, uncertain: true } as const;
}

function held(scene: Scene, sessionKey: string): Promise<number> {
  return scene.store.read('countHeld', { platform: PLATFORM, sessionKey });
}

function release(scene: Scene, sessionId: string): Promise<number> {
  const reply = { messageId: '9' };
  return scene.store.write('releaseHeld', { context: scene.context(), sessionId, platform: PLATFORM, reply });
}

async function claimOne(scene: Scene, repliesPerLane = 8): Promise<ReplyLane> {
  const lanes = await scene.claimReplies({ repliesPerLane });
  if (lanes.length !== 1 || lanes[0] === undefined) throw new Error(`${lanes.length} lanes were due, not 1`);
  return lanes[0];
}

async function reply(scene: Scene, chat: string, ids: readonly string[], shape: Record<string, unknown> = {}) {
  const asked = await scene.ask(chat);
  const deliveries = ids.map((id) => ({ id, platform: PLATFORM, target: { chat }, text: `text of ${id}`, shape }));
  await scene.finish(asked, {}, { deliveries });
  return asked;
}
