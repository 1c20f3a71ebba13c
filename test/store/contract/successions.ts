import { describe, expect } from 'vitest';
import { type Open, sceneTests } from './scene.ts';

/** How one session follows another: reset, resume, branch. */
export function successionsContract(open: Open): void {
  const test = sceneTests(open);

  describe('a succession', () => {
    test('/new ends the old session, starts the new one and then tells the reset, in that order', async (scene) => {
      const { id: old } = await scene.start('42');
      const { session, ended } = await scene.reset('42', { command: 'new', args: 'title' }, { title: 'fresh' });
      expect(ended).toBe(old);
      expect(session).toMatchObject({ parentId: old, lineage: 'reset', title: 'fresh', state: 'open' });
      const names = { [old]: 'old', [session.id]: 'new' };
      expect(await scene.story(names)).toEqual([
        'old session:start',
        'old command:new',
        'old session:end',
        'new session:start',
        'new session:reset',
      ]);
      const [, , end, start, reset] = await scene.events();
      expect(end).toMatchObject({ reason: 'user_reset', cause: null, trigger: 'command', successor_id: session.id });
      expect(start).toMatchObject({ parent_id: old, lineage: 'reset', session_seq: 1 });
      expect(reset).toMatchObject({ old_session_id: old, new_session_id: session.id, session_seq: 2 });
    });

    test('/new without an open session only starts one', async (scene) => {
      const { session, ended } = await scene.reset('42', { command: 'new', args: '' });
      expect(ended).toBeNull();
      expect(session).toMatchObject({ parentId: null, lineage: null });
      expect(await scene.types()).toEqual(['session:start', 'command:new']);
    });

    test('a turn that /new cuts off ends before its session does', async (scene) => {
      const asked = await scene.ask('42');
      await scene.reset('42', { command: 'new', args: '' });
      expect(await scene.types(asked.session.id)).toEqual([
        'session:start',
        'agent:start',
        'command:new',
        'agent:end',
        'session:end',
      ]);
      const turn = await scene.store.read('getTurn', { turnId: asked.turn.id });
      expect(turn).toMatchObject({ state: 'over', outcome: 'interrupted', sessionId: asked.session.id });
    });

    test('messages that waited move on to the successor and hold its deadline', async (scene) => {
      const asked = await scene.ask('42', 'one');
      const waiting = [await scene.say('42', 'two'), await scene.say('42', 'three')];
      const { session } = await scene.reset('42');
      expect(session.expiresAt).toBeNull();
      for (const { turn } of waiting) {
        const moved = await scene.store.read('getTurn', { turnId: turn.id });
        expect(moved).toMatchObject({ state: 'queued', sessionId: session.id });
      }
      const unfinished = await scene.store.read('unfinishedTurns', { limit: 10 });
      expect(unfinished.map(({ id }) => id)).toEqual(waiting.map(({ turn }) => turn.id));
      const begun = await scene.begin(session.id, waiting[0]?.turn.id ?? '');
      expect(begun.turns.map(({ state }) => state)).toEqual(['running', 'queued']);
      expect((await scene.session(asked.session.id)).state).toBe('ended');
    });

    test('without a successor, messages that waited are over', async (scene) => {
      const asked = await scene.ask('42', 'one');
      const waiting = await scene.say('42', 'two');
      await scene.end(asked.session.id);
      for (const turnId of [asked.turn.id, waiting.turn.id]) {
        const turn = await scene.store.read('getTurn', { turnId });
        expect(turn).toMatchObject({ state: 'over', outcome: 'interrupted', sessionId: asked.session.id });
      }
      expect(await scene.store.read('unfinishedTurns', { limit: 10 })).toEqual([]);
      expect((await scene.types(asked.session.id)).slice(-2)).toEqual(['agent:end', 'session:end']);
    });

    test('resuming an ended session starts a linked one and switches from the open one', async (scene) => {
      const first = await scene.start('42', {}, { title: 'the first' });
      await scene.end(first.id);
      const second = await scene.start('42');
      const slash = { command: 'resume', args: first.id };
      const resumed = await scene.continue(first.id, 'resume', { slash });
      expect(resumed).toMatchObject({ ended: second.id, created: true });
      expect(resumed.session).toMatchObject({ parentId: first.id, lineage: 'resume', title: 'the first' });
      expect(await scene.session(first.id)).toMatchObject({ state: 'ended', endReason: 'admin_close' });
      const end = (await scene.events(second.id)).at(-1);
      expect(end).toMatchObject({ reason: 'switched', trigger: 'command', successor_id: resumed.session.id });
      const names = { [first.id]: 'first', [second.id]: 'second', [resumed.session.id]: 'third' };
      expect((await scene.story(names)).slice(2)).toEqual([
        'second session:start',
        'second command:resume',
        'second session:end',
        'third session:start',
      ]);
    });

    test('resuming when nothing is open ends nothing', async (scene) => {
      const first = await scene.start('42');
      await scene.end(first.id);
      const resumed = await scene.continue(first.id, 'resume', { slash: { command: 'resume', args: '' } });
      expect(resumed).toMatchObject({ ended: null, created: true });
      expect(await scene.types(resumed.session.id)).toEqual(['session:start', 'command:resume']);
    });

    test('resuming the open session of a conversation gives it back as it is', async (scene) => {
      const session = await scene.start('42');
      const resumed = await scene.continue(session.id, 'resume');
      expect(resumed).toEqual({ session, ended: null, created: false });
      expect(await scene.types()).toEqual(['session:start']);
    });

    test('branching from the open session ends it as branched', async (scene) => {
      const session = await scene.start('42');
      const branch = await scene.continue(session.id, 'branch', { title: 'what if', trigger: 'api' });
      expect(branch).toMatchObject({ ended: session.id, created: true });
      expect(branch.session).toMatchObject({ parentId: session.id, lineage: 'branch', title: 'what if' });
      const end = (await scene.events(session.id)).at(-1);
      expect(end).toMatchObject({ reason: 'branched', trigger: 'api', successor_id: branch.session.id });
    });

    test('a session can be resumed in another conversation, and stays what it was in its own', async (scene) => {
      const session = await scene.start('42');
      const resumed = await scene.continue(session.id, 'resume', { conversation: scene.conversation('43') });
      expect(resumed).toMatchObject({ ended: null, created: true });
      expect(resumed.session).toMatchObject({ key: 'agent:main:telegram:dm:43', parentId: session.id });
      expect(await scene.session(session.id)).toMatchObject({ state: 'open' });
    });

    test('messages that waited move on when a session is switched away from', async (scene) => {
      const first = await scene.start('42');
      await scene.end(first.id);
      await scene.ask('42', 'one');
      const waiting = await scene.say('42', 'two');
      const { session } = await scene.continue(first.id, 'resume');
      const moved = await scene.store.read('getTurn', { turnId: waiting.turn.id });
      expect(moved).toMatchObject({ state: 'queued', sessionId: session.id });
    });
  });
}
