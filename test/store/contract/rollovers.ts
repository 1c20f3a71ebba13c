import { describe, expect } from 'vitest';
import { codeOf } from './code-of.ts';
import { DAY, HOUR, MINUTE, type Open, rulesWith, sceneTests } from './scene.ts';

/** What a message does with a session it cannot continue. */
export function rolloversContract(open: Open): void {
  const test = sceneTests(open);

  describe('a long queue', () => {
    test('is served from its beginning, and each of its messages can be dropped', async (scene) => {
      const first = await scene.ask('42', 'first');
      const waiting = [];
      for (let i = 0; i < 80; i++) {
        scene.clock.advance(1);
        waiting.push(await scene.say('42', `waiting ${i}`));
      }
      scene.clock.advance(-HOUR);
      const late = await scene.say('42', 'after the clock was set back');
      const last = waiting.at(-1);
      if (last === undefined) throw new TypeError('nothing waits');
      expect(late.turn.createdAt).toBe(last.turn.createdAt);
      await scene.finish({ session: first.session, turn: last.turn }, { outcome: 'failed' }, { epoch: null });
      await scene.finish(first);
      const [next] = await scene.store.read('openTurns', { sessionId: first.session.id, limit: 1 });
      expect(next?.id).toBe(waiting[0]?.turn.id);
      const begun = await scene.begin(first.session.id, waiting[70]?.turn.id ?? '');
      expect(begun.turns.filter(({ state }) => state === 'running')).toMatchObject([{ id: waiting[70]?.turn.id }]);
      expect(await codeOf(scene.begin(first.session.id, next?.id ?? ''))).toBe('illegal_move');
    });

    test('moves on as a whole to the session that follows', async (scene) => {
      const first = await scene.ask('42', 'first');
      for (let i = 0; i < 80; i++) {
        scene.clock.advance(1);
        await scene.say('42', `waiting ${i}`);
      }
      const { session } = await scene.reset('42');
      const open = await scene.store.read('openTurns', { sessionId: session.id, limit: 200 });
      expect(open.map(({ text }) => text)).toEqual(Array.from({ length: 80 }, (_, i) => `waiting ${i}`));
      await scene.end(session.id);
      expect(await scene.store.read('openTurns', { sessionId: session.id, limit: 200 })).toEqual([]);
      expect(await scene.store.read('unfinishedTurns', { limit: 200 })).toEqual([]);
      expect((await scene.session(first.session.id)).state).toBe('ended');
    });
  });

  describe('a message', () => {
    test('that finds its session overdue ends it and is the first turn of the next, in one order', async (scene) => {
      const old = await scene.start('42');
      scene.clock.advance(DAY);
      const said = await scene.say('42', 'good morning', { begin: true });
      expect(said).toMatchObject({ started: true, begun: true, ended: { id: old.id, cause: 'idle' } });
      expect(said.session).toMatchObject({ parentId: old.id, lineage: 'reset', state: 'open' });
      expect(said.turn.sessionId).toBe(said.session.id);
      expect(await scene.story({ [old.id]: 'old', [said.session.id]: 'new' })).toEqual([
        'old session:start',
        'old session:end',
        'new session:start',
        'new agent:start',
      ]);
      expect((await scene.events(old.id)).at(-1)).toMatchObject({
        reason: 'auto_reset',
        cause: 'idle',
        trigger: 'message',
        successor_id: said.session.id,
        duration_ms: DAY,
      });
      expect(await scene.session(old.id)).toMatchObject({ endReason: 'auto_reset', endCause: 'idle' });
    });

    test('one millisecond before the deadline continues the session', async (scene) => {
      const { id } = await scene.start('42');
      scene.clock.advance(DAY - 1);
      expect(await scene.say('42', 'just in time')).toMatchObject({ started: false, ended: null, session: { id } });
    });

    test('after the daily boundary ends it with that cause', async (scene) => {
      scene.store.useRules(rulesWith({ mode: 'both', at: '13:00' }));
      const { id } = await scene.start('42');
      scene.clock.advance(HOUR);
      expect((await scene.say('42', 'hello')).ended).toEqual({ id, cause: 'daily' });
    });

    test('that finds its session suspended starts a new one, whatever else is due', async (scene) => {
      const { id } = await scene.start('42');
      await scene.command(id, { name: 'suspend', reason: 'stuck_loop' });
      scene.clock.advance(2 * DAY);
      expect((await scene.say('42', 'hello')).ended).toEqual({ id, cause: 'suspended' });
    });

    test('that finds a session an operator parked waits there until it is released', async (scene) => {
      const { id } = await scene.start('42');
      await scene.command(id, { name: 'suspend', reason: 'operator' });
      scene.clock.advance(9 * DAY);
      const said = await scene.say('42', 'hello', { begin: true });
      expect(said).toMatchObject({ begun: false, ended: null, session: { id, state: 'suspended', expiresAt: null } });
      expect(await codeOf(scene.begin(id, said.turn.id))).toBe('illegal_move');
      expect(await scene.store.read('unfinishedTurns', { limit: 10 })).toEqual([]);
      expect((await scene.expire()).ended).toEqual([]);
      const { session } = await scene.command(id, { name: 'reopen' });
      expect(session).toMatchObject({ state: 'open', suspendReason: null });
      expect(await scene.store.read('unfinishedTurns', { limit: 10 })).toMatchObject([{ id: said.turn.id }]);
      expect((await scene.begin(id, said.turn.id)).turns).toMatchObject([{ state: 'running' }]);
      expect((await scene.events(id)).map(({ type }) => type)).toEqual([
        'session:start',
        'session:suspend',
        'session:release',
        'agent:start',
      ]);
    });

    test('is what a released session waits for: it expires an idle time later, not at once', async (scene) => {
      const { id } = await scene.start('42');
      await scene.command(id, { name: 'suspend', reason: 'operator' });
      scene.clock.advance(9 * DAY);
      const { session } = await scene.command(id, { name: 'reopen' });
      expect(session.expiresAt).toBe(scene.clock.now() + DAY);
    });

    test('that finds a stuck session takes what waited there along, in order', async (scene) => {
      const asked = await scene.ask('42', 'one');
      const waiting = await scene.say('42', 'two');
      await scene.command(asked.session.id, { name: 'suspend', reason: 'stuck_loop' });
      const said = await scene.say('42', 'three', { begin: true });
      expect(said).toMatchObject({ begun: false, ended: { id: asked.session.id, cause: 'suspended' } });
      const unfinished = await scene.store.read('unfinishedTurns', { limit: 10 });
      expect(unfinished.map(({ id, sessionId }) => [id, sessionId])).toEqual([
        [waiting.turn.id, said.session.id],
        [said.turn.id, said.session.id],
      ]);
    });

    test('after the resume window ends a session that waits for its cut turn', async (scene) => {
      const asked = await scene.ask('42');
      await scene.cut(asked.session.id);
      scene.clock.advance(HOUR + 1);
      const said = await scene.say('42', 'still there?');
      expect(said.ended).toEqual({ id: asked.session.id, cause: 'resume_expired' });
      const cut = await scene.store.read('getTurn', { turnId: asked.turn.id });
      expect(cut).toMatchObject({ state: 'over', outcome: 'interrupted', sessionId: asked.session.id });
      expect((await scene.types(asked.session.id)).slice(-2)).toEqual(['session:resume_pending', 'session:end']);
    });

    test('within the resume window continues it', async (scene) => {
      const asked = await scene.ask('42');
      await scene.cut(asked.session.id);
      scene.clock.advance(HOUR);
      const said = await scene.say('42', 'still there?');
      expect(said).toMatchObject({ ended: null, session: { id: asked.session.id, state: 'resume_pending' } });
    });

    test('that finds both a passed deadline and a stale resume marker names the deadline', async (scene) => {
      scene.store.useRules(rulesWith({ idleMs: 30 * MINUTE }));
      const asked = await scene.ask('42');
      await scene.cut(asked.session.id);
      scene.clock.advance(2 * HOUR);
      expect((await scene.say('42', 'hello')).ended).toEqual({ id: asked.session.id, cause: 'idle' });
    });

    test('never ends a session whose mode is none, stale marker or not', async (scene) => {
      scene.store.useRules(rulesWith({ mode: 'none' }));
      const asked = await scene.ask('42');
      await scene.cut(asked.session.id);
      scene.clock.advance(900 * DAY);
      expect(await scene.say('42', 'hello')).toMatchObject({ ended: null, session: { id: asked.session.id } });
    });

    test('after the sweep has ended the session starts one without lineage', async (scene) => {
      const { id } = await scene.start('42');
      scene.clock.advance(DAY);
      await scene.expire();
      const said = await scene.say('42', 'hello');
      expect(said).toMatchObject({ started: true, ended: null, session: { parentId: null, lineage: null } });
      expect(await scene.session(id)).toMatchObject({ endReason: 'idle_expiry', endCause: null });
    });

    test('that waits in a session that cannot go on moves to a fresh one when asked to', async (scene) => {
      const asked = await scene.ask('42', 'one');
      const waiting = [await scene.say('42', 'two'), await scene.say('42', 'three')];
      const rollOver = (newSessionId: string) =>
        scene.store.write('rollOver', { context: scene.context(), sessionId: asked.session.id, newSessionId });
      expect(await rollOver('ses-new')).toBeNull();
      await scene.command(asked.session.id, { name: 'suspend', reason: 'stuck_loop' });
      const rolled = await rollOver('ses-new');
      expect(rolled).toMatchObject({
        session: { id: 'ses-new', parentId: asked.session.id, lineage: 'reset', expiresAt: null },
        ended: { id: asked.session.id, cause: 'suspended' },
      });
      const unfinished = await scene.store.read('unfinishedTurns', { limit: 10 });
      expect(unfinished.map(({ id, sessionId }) => [id, sessionId])).toEqual(
        waiting.map(({ turn }) => [turn.id, 'ses-new']),
      );
      expect((await scene.events(asked.session.id)).at(-1)).toMatchObject({
        type: 'session:end',
        reason: 'auto_reset',
        cause: 'suspended',
        trigger: 'message',
        successor_id: 'ses-new',
      });
      expect(await rollOver('ses-other')).toBeNull();
    });

    test('moves nothing when nothing waits', async (scene) => {
      const { id } = await scene.start('42');
      await scene.command(id, { name: 'suspend', reason: 'stuck_loop' });
      const args = { context: scene.context(), sessionId: id, newSessionId: 'ses-new' };
      expect(await scene.store.write('rollOver', args)).toBeNull();
      expect((await scene.session(id)).state).toBe('suspended');
    });

    test('each conversation has its own policy, by type and by platform', async (scene) => {
      const resetByType = { group: { idleMs: HOUR } };
      const resetByPlatform = { discord: { mode: 'none' } } as const;
      scene.store.useRules(rulesWith({}, { resetByType, resetByPlatform }));
      const group = await scene.start('', { key: 'agent:main:telegram:group:7:9' });
      const silent = await scene.start('', { key: 'agent:main:discord:dm:7', platform: 'discord' });
      const direct = await scene.start('42');
      const now = scene.clock.now();
      expect([group, silent, direct].map(({ expiresAt }) => expiresAt)).toEqual([now + HOUR, null, now + DAY]);
    });
  });
}
