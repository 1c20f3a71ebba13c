import { describe, expect } from 'vitest';
import { codeOf } from './code-of.ts';
import { HOUR, MINUTE, type Open, SECOND, sceneTests } from './scene.ts';

/** Who may write: leases, owners and epochs. */
export function ownershipContract(open: Open): void {
  const test = sceneTests(open);

  describe('a fence', () => {
    test('keeps another instance from beginning a turn of a session that is held', async (scene) => {
      const asked = await scene.ask('42');
      const waiting = await scene.say('42', 'two');
      const other = await scene.joinedBy('two');
      expect(await codeOf(other.begin(asked.session.id, waiting.turn.id))).toBe('illegal_move');
      await scene.command(asked.session.id, { name: 'background', running: 1, epoch: asked.session.epoch });
      await scene.finish(asked);
      expect(await codeOf(other.begin(asked.session.id, waiting.turn.id))).toBe('fenced');
      expect((await scene.begin(asked.session.id, waiting.turn.id)).session).toMatchObject({ owner: 'one', epoch: 2 });
    });

    test('refuses every write of an older epoch after the turn began again', async (scene) => {
      const asked = await scene.ask('42');
      const { id, epoch } = asked.session;
      const other = await scene.joinedBy('two');
      await other.cut(id, 'crash');
      const { session } = await other.begin(id, asked.turn.id);
      expect(session).toMatchObject({ owner: 'two', epoch: epoch + 1 });
      const message = { role: 'assistant', text: 'late', turnId: null };
      const late = [
        scene.finish(
          asked,
          {},
          { messages: [message], deliveries: [{ id: 'dlv', platform: 'telegram', target: {}, text: 'late' }] },
        ),
        scene.cut(id, 'shutdown', epoch),
        scene.command(id, { name: 'background', running: 1, epoch }),
        scene.command(id, { name: 'compress', beforeTokens: 2, afterTokens: 1, count: 1, epoch }),
        scene.end(id, 'api_close', { epoch }),
        scene.store.write('appendMessages', { context: scene.context(), sessionId: id, epoch, messages: [message] }),
      ];
      expect(await Promise.all(late.map(codeOf))).toEqual(late.map(() => 'fenced'));
      expect(await scene.session(id)).toEqual(session);
      expect(await scene.store.read('listMessages', { sessionId: id, after: 0, limit: 10 })).toEqual([]);
      await other.finish({ session, turn: asked.turn });
    });

    test('refuses the right epoch from the wrong instance', async (scene) => {
      const asked = await scene.ask('42');
      const other = await scene.joinedBy('two');
      expect(await codeOf(other.finish(asked))).toBe('fenced');
      await scene.finish(asked);
    });

    test('refuses a turn that was taken over by the same instance', async (scene) => {
      const asked = await scene.ask('42');
      await scene.cut(asked.session.id, 'restart', asked.session.epoch);
      expect(await codeOf(scene.finish(asked))).toBe('fenced');
      const { session } = await scene.begin(asked.session.id, asked.turn.id);
      expect(await codeOf(scene.finish(asked))).toBe('fenced');
      await scene.finish({ session, turn: asked.turn });
    });

    test('gives a durable session to whoever comes first once its turn is over', async (scene) => {
      const asked = await scene.ask('42');
      await scene.finish(asked);
      const other = await scene.joinedBy('two');
      const { session } = await other.ask('42', 'from elsewhere');
      expect(session).toMatchObject({ id: asked.session.id, owner: 'two', epoch: asked.session.epoch + 1 });
    });

    test('keeps an attached session with the instance that started it', async (scene) => {
      const session = await scene.start('42', { kind: 'cli', attached: true });
      expect(session).toMatchObject({ owner: 'one', epoch: 1, lastHeartbeatAt: scene.clock.now() });
      const other = await scene.joinedBy('two');
      const { turn } = await other.say('42', 'hello', {
        conversation: scene.conversation('42', { kind: 'cli', attached: true }),
      });
      expect(await codeOf(other.begin(session.id, turn.id))).toBe('fenced');
      expect(await codeOf(other.end(session.id, 'cli_close', { epoch: 1 }))).toBe('fenced');
      const begun = await scene.begin(session.id, turn.id);
      const after = await scene.finish({ session: begun.session, turn });
      expect(after.session).toMatchObject({ owner: 'one', expiresAt: null });
    });
  });

  describe('a lease', () => {
    test('that ran out refuses every write, and cannot be renewed', async (scene) => {
      await scene.boot('brief', MINUTE);
      scene.instance = 'brief';
      const asked = await scene.ask('42');
      await scene.subscribe('listener');
      scene.clock.advance(MINUTE);
      const late = [
        scene.say('42', 'hello'),
        scene.start('43'),
        scene.finish(asked),
        scene.end(asked.session.id),
        scene.reset('42'),
        scene.continue(asked.session.id, 'branch'),
        scene.command(asked.session.id, { name: 'note', command: 'status', args: '' }),
        scene.expire(),
        scene.reap(),
        scene.claim('listener'),
        scene.claimReplies(),
        scene.store.write('reconcile', {
          context: scene.context(),
          sessions: [{ id: asked.session.id, epoch: null, held: false }],
          claims: [],
        }),
        scene.store.write('beat', { instance: 'brief', ttlMs: HOUR }),
      ];
      expect(await Promise.all(late.map(codeOf))).toEqual(late.map(() => 'lease_lost'));
      await scene.boot('brief', HOUR);
      expect(await codeOf(scene.say('42', 'hello'))).toBe('lease_lost');
      expect(await scene.types()).toEqual(['session:start', 'agent:start']);
    });

    test('that nobody took is none', async (scene) => {
      scene.instance = 'nobody';
      expect(await codeOf(scene.say('42', 'hello'))).toBe('lease_lost');
      expect(await codeOf(scene.store.write('beat', { instance: 'nobody', ttlMs: HOUR }))).toBe('lease_lost');
    });

    test('lasts as long as it is renewed in time', async (scene) => {
      await scene.boot('beating', MINUTE);
      scene.instance = 'beating';
      for (let beat = 0; beat < 5; beat++) {
        scene.clock.advance(MINUTE - 1);
        await scene.store.write('beat', { instance: 'beating', ttlMs: MINUTE });
      }
      await scene.say('42', 'hello');
      const instances = await scene.store.read('listInstances', {});
      expect(instances.find(({ id }) => id === 'beating')).toMatchObject({
        state: 'up',
        expired: false,
        heartbeatAt: scene.clock.now(),
        lostAt: null,
      });
    });

    test('that was declared dead stays dead, though its time was not over', async (scene) => {
      const other = await scene.joinedBy('two');
      await scene.reap(['two']);
      expect(await codeOf(other.say('42', 'hello'))).toBe('lease_lost');
      expect(await codeOf(other.store.write('beat', { instance: 'two', ttlMs: HOUR }))).toBe('lease_lost');
    });
  });

  describe('a heartbeat', () => {
    test('reaches all sessions in a turn of its instance and no others, and changes nothing else', async (scene) => {
      const mine = [await scene.ask('1'), await scene.ask('2'), await scene.ask('3')].map(({ session }) => session);
      const idle = await scene.start('4');
      const other = await scene.joinedBy('two');
      const foreign = (await other.ask('5')).session;
      scene.clock.advance(15 * SECOND);
      await scene.store.write('beat', { instance: 'one', ttlMs: HOUR });
      for (const session of mine) {
        expect(await scene.session(session.id)).toEqual({ ...session, lastHeartbeatAt: scene.clock.now() });
      }
      for (const session of [idle, foreign]) expect(await scene.session(session.id)).toEqual(session);
      expect(await scene.types()).toHaveLength(9);
    });
  });
}
