import { describe, expect } from 'vitest';
import { codeOf } from './code-of.ts';
import { DAY, HOUR, MINUTE, type Open, SECOND, sceneTests } from './scene.ts';

/** What becomes of the sessions of an instance that died, and of those whose instance lives. */
export function reapingContract(open: Open): void {
  const test = sceneTests(open);

  describe('the reaper', () => {
    test('ends what was attached, interrupts what was in a turn and frees the rest', async (scene) => {
      const dying = await scene.joinedBy('dying', MINUTE);
      const attached = await dying.start('1', { kind: 'batch', attached: true });
      const busy = await dying.ask('2', 'work');
      const waiting = await dying.say('2', 'more work');
      const host = await dying.ask('3', 'serve');
      await dying.command(host.session.id, { name: 'background', running: 2, epoch: host.session.epoch });
      await dying.finish(host);
      const idle = await dying.start('4');
      scene.clock.advance(MINUTE);

      expect(await scene.reap()).toEqual({
        lost: ['dying'],
        reaped: [attached.id],
        interrupted: [busy.session.id],
        released: [host.session.id],
        more: false,
      });
      expect(await scene.session(attached.id)).toMatchObject({ state: 'ended', endReason: 'reaped', endCause: null });
      expect((await scene.events(attached.id)).at(-1)).toMatchObject({ trigger: 'reaper', instance: 'one' });
      expect(await scene.session(busy.session.id)).toMatchObject({
        state: 'resume_pending',
        resumeReason: 'crash',
        owner: null,
      });
      expect(await scene.store.read('getTurn', { turnId: busy.turn.id })).toMatchObject({ state: 'cut', cuts: 1 });
      expect(await scene.store.read('getTurn', { turnId: waiting.turn.id })).toMatchObject({ state: 'queued' });
      expect((await scene.events(busy.session.id)).slice(-2)).toMatchObject([
        { type: 'agent:end', outcome: 'interrupted' },
        { type: 'session:resume_pending', reason: 'crash', turn_id: busy.turn.id },
      ]);
      const freed = await scene.session(host.session.id);
      expect(freed).toMatchObject({ state: 'open', owner: null, background: 0 });
      expect(freed.expiresAt).toBe(freed.lastActivityAt + DAY);
      expect(await scene.session(idle.id)).toEqual(idle);
    });

    test('ends an attached session in a turn with the end of its turn first', async (scene) => {
      const dying = await scene.joinedBy('dying', MINUTE);
      const kin = { kind: 'cli', attached: true } as const;
      const asked = await dying.ask('1', 'work', { conversation: dying.conversation('1', kin) });
      const waiting = await dying.say('1', 'more', { conversation: dying.conversation('1', kin) });
      scene.clock.advance(MINUTE);
      await scene.reap();
      expect((await scene.types(asked.session.id)).slice(-2)).toEqual(['agent:end', 'session:end']);
      for (const turnId of [asked.turn.id, waiting.turn.id]) {
        expect(await scene.store.read('getTurn', { turnId })).toMatchObject({ state: 'over', outcome: 'interrupted' });
      }
    });

    test('tells of a lost instance once, however many look', async (scene) => {
      const dying = await scene.joinedBy('dying', MINUTE);
      await dying.ask('1');
      await dying.ask('2');
      const others = [await scene.joinedBy('two'), await scene.joinedBy('three')];
      scene.clock.advance(MINUTE);
      await Promise.all([scene, ...others].map((other) => other.reap()));
      await scene.reap();
      const lost = await scene.events(null, ['instance:lost']);
      expect(lost).toMatchObject([
        {
          id: 'dying:lost',
          session_id: null,
          session_key: null,
          session_seq: null,
          instance: 'dying',
          sessions: 2,
        },
      ]);
      const ends = await scene.events(null, ['session:resume_pending']);
      expect(ends).toHaveLength(2);
    });

    test('never touches the sessions of an owner that lives, however long a tool takes', async (scene) => {
      const busy = await scene.joinedBy('busy', MINUTE);
      const asked = await busy.ask('1', 'a very long tool');
      const attached = await busy.start('2', { kind: 'cli', attached: true });
      for (let half = 0; half < 20; half++) {
        scene.clock.advance(30 * SECOND);
        await busy.store.write('beat', { instance: 'busy', ttlMs: MINUTE });
        expect(await scene.reap()).toMatchObject({ lost: [], reaped: [], interrupted: [], released: [] });
      }
      expect((await scene.session(asked.session.id)).state).toBe('open');
      expect((await scene.session(attached.id)).state).toBe('open');
      await busy.finish(asked);
    });

    test('acts at once on a death that was proven, lease or not', async (scene) => {
      const dying = await scene.joinedBy('dying');
      const { id } = await dying.start('1', { kind: 'batch', attached: true });
      expect(await scene.reap(['dying'])).toMatchObject({ lost: ['dying'], reaped: [id] });
    });

    test('does not mark itself dead', async (scene) => {
      expect(await scene.reap(['one'])).toMatchObject({ lost: [] });
      await scene.say('42', 'still here');
    });

    test('goes in batches and says when more is left', async (scene) => {
      const dying = await scene.joinedBy('dying', MINUTE);
      for (const chat of ['1', '2', '3']) await dying.start(chat, { kind: 'batch', attached: true });
      scene.clock.advance(MINUTE);
      const first = await scene.reap([], 2);
      expect(first.reaped).toHaveLength(2);
      expect(first.more).toBe(true);
      const second = await scene.reap([], 2);
      expect(second.reaped).toHaveLength(1);
      expect(second).toMatchObject({ lost: [], more: false });
    });

    test('refuses what a reaped owner still writes', async (scene) => {
      const dying = await scene.joinedBy('dying', MINUTE);
      const asked = await dying.ask('1');
      scene.clock.advance(MINUTE);
      await scene.reap();
      expect(await codeOf(dying.finish(asked))).toBe('lease_lost');
      await dying.boot('reborn');
      dying.instance = 'reborn';
      expect(await codeOf(dying.finish(asked))).toBe('fenced');
      const { session } = await scene.begin(asked.session.id, asked.turn.id);
      expect(await codeOf(dying.finish(asked))).toBe('fenced');
      await scene.finish({ session, turn: asked.turn });
    });

    test('parks a session whose owners die three times in a row', async (scene) => {
      const { session, turn } = await scene.say('1', 'poison');
      for (const name of ['first', 'second', 'third']) {
        const dying = await scene.joinedBy(name);
        await dying.begin(session.id, turn.id);
        await scene.reap([name]);
      }
      expect(await scene.session(session.id)).toMatchObject({ state: 'suspended', cuts: 3 });
      expect((await scene.types(session.id)).slice(-3)).toEqual([
        'session:resume_pending',
        'session:suspend',
        'work:set_aside',
      ]);
    });
  });

  describe('an instance', () => {
    test('that leaves in order and owns nothing is forgotten at once', async (scene) => {
      const leaving = await scene.joinedBy('leaving');
      await leaving.store.write('stopInstance', { instance: 'leaving' });
      const instances = await scene.store.read('listInstances', {});
      expect(instances.map(({ id }) => id)).toEqual(['one']);
      expect(await scene.reap()).toMatchObject({ lost: [] });
      expect(await scene.types()).toEqual([]);
    });

    test('that leaves while it owns sessions leaves them to the reaper at once', async (scene) => {
      const leaving = await scene.joinedBy('leaving');
      const { id } = await leaving.start('1', { kind: 'cli', attached: true });
      await leaving.store.write('stopInstance', { instance: 'leaving' });
      expect(await scene.reap()).toMatchObject({ reaped: [id] });
    });

    test('that was lost is forgotten later, but not while it owns something', async (scene) => {
      const dying = await scene.joinedBy('dying', MINUTE);
      for (const chat of ['1', '2']) await dying.start(chat, { kind: 'batch', attached: true });
      scene.clock.advance(MINUTE);
      await scene.reap([], 1);
      scene.clock.advance(HOUR);
      const forget = () => scene.store.write('forgetInstances', { lostBefore: scene.clock.now() });
      await forget();
      const known = await scene.store.read('listInstances', {});
      expect(known.map(({ id, state, owns }) => [id, state, owns])).toEqual([
        ['dying', 'dead', 1],
        ['one', 'up', 0],
      ]);
      await scene.reap();
      await forget();
      expect(await scene.store.read('listInstances', {})).toHaveLength(1);
    });

    test('finds what names it and what it does not hold, and settles only that', async (scene) => {
      const held = await scene.ask('1');
      const lost = await scene.ask('2');
      const shell = await scene.start('3', { kind: 'cli', attached: true });
      const other = await scene.joinedBy('two');
      const foreign = await other.ask('4');
      const rows = await scene.store.read('heldBy', { instance: 'one' });
      expect(rows.sessions.map(({ id }) => id).toSorted()).toEqual(
        [held.session.id, lost.session.id, shell.id].toSorted(),
      );
      const sessions = [lost.session.id, foreign.session.id, shell.id].map((id) => ({ id, epoch: null, held: false }));
      const settled = await scene.store.write('reconcile', { context: scene.context(), sessions, claims: [] });
      expect(settled).toEqual({ reaped: [shell.id], interrupted: [lost.session.id], released: [] });
      expect((await scene.session(held.session.id)).owner).toBe('one');
      expect((await scene.session(foreign.session.id)).owner).toBe('two');
    });

    test('settles only the turn of a session that is held: it was begun, and the answer got lost', async (scene) => {
      const asked = await scene.ask('1');
      const shell = await scene.start('3', { kind: 'cli', attached: true });
      const typed = await scene.ask('3', 'typed', {
        conversation: scene.conversation('3', { kind: 'cli', attached: true }),
      });
      expect(typed.session.id).toBe(shell.id);
      const sessions = [asked.session, typed.session].map(({ id, epoch }) => ({ id, epoch, held: true }));
      const stale = sessions.map((stray) => ({ ...stray, epoch: stray.epoch - 1 }));
      const reconcile = (strays: typeof sessions) =>
        scene.store.write('reconcile', { context: scene.context(), sessions: strays, claims: [] });
      expect(await reconcile(stale)).toEqual({ reaped: [], interrupted: [], released: [] });
      expect(await reconcile(sessions)).toMatchObject({ reaped: [], interrupted: [asked.session.id] });
      expect(await scene.session(asked.session.id)).toMatchObject({ state: 'resume_pending', owner: null });
      expect(await scene.session(shell.id)).toMatchObject({ state: 'open', owner: 'one' });
      expect(await scene.store.read('openTurns', { sessionId: shell.id, limit: 9 })).toEqual([]);
    });
  });
}
