import { describe, expect } from 'vitest';
import { timeSortedIds } from '../../../src/engine/ids.ts';
import { codeOf } from './code-of.ts';
import { type Open, sceneTests } from './scene.ts';

/** What was asked twice happens once: platforms send again, and replies of the store get lost. */
export function repeatsContract(open: Open): void {
  const test = sceneTests(open);

  describe('a repeat', () => {
    test('a message that comes twice is one turn', async (scene) => {
      const first = await scene.say('42', 'hello', { originRef: 'telegram:42:7' });
      const again = await scene.say('42', 'hello', { originRef: 'telegram:42:7', begin: true });
      expect(again).toMatchObject({ duplicate: true, begun: false, started: false, ended: null });
      expect(again.turn).toEqual(first.turn);
      expect(again.session).toEqual(first.session);
      expect(await scene.types()).toEqual(['session:start']);
    });

    test('a message that comes again after a restart is still the same turn', async (scene) => {
      const first = await scene.ask('42', 'hello', { originRef: 'telegram:42:7' });
      await scene.finish(first);
      await scene.end(first.session.id);
      await scene.reopen();
      const again = await scene.say('42', 'hello', { originRef: 'telegram:42:7' });
      expect(again).toMatchObject({ duplicate: true, begun: false, session: { id: first.session.id } });
      expect(again.turn).toMatchObject({ id: first.turn.id, state: 'over', outcome: 'done' });
      expect((await scene.types()).filter((type) => type === 'session:start')).toHaveLength(1);
    });

    test('a message that comes many times at once is one turn', async (scene) => {
      const ref = { originRef: 'telegram:42:7', begin: true };
      const all = await Promise.all(Array.from({ length: 12 }, () => scene.say('42', 'hello', ref)));
      expect(all.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
      expect(new Set(all.map(({ turn }) => turn.id)).size).toBe(1);
      expect(await scene.types()).toEqual(['session:start', 'agent:start']);
    });

    test('one message that two conversations claim at once is one turn', async (scene) => {
      const said = Array.from({ length: 12 }, (_, i) => scene.say(`4${i}`, 'hello', { originRef: 'telegram:7' }));
      const all = await Promise.all(said);
      expect(all.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
      expect(await scene.types()).toEqual(['session:start']);
    });

    test('the same receive again begins what it began', async (scene) => {
      const same = { turnId: 'trn-same', newSessionId: 'ses-same', begin: true };
      const first = await scene.say('42', 'hello', same);
      const again = await scene.say('42', 'hello', same);
      expect(first.begun).toBe(true);
      expect(again).toMatchObject({ begun: true, duplicate: false, turn: { id: 'trn-same' } });
      expect(again.session).toEqual(first.session);
      expect(await scene.types()).toEqual(['session:start', 'agent:start']);
    });

    test('the same start again returns the first one', async (scene) => {
      const same = { context: scene.context('cmd-same'), sessionId: 'ses-same' };
      const first = await scene.start('42', {}, same);
      expect(await scene.start('42', {}, same)).toEqual(first);
      expect(await scene.types()).toEqual(['session:start']);
    });

    test('a session id is never used again', async (scene) => {
      await scene.start('42', {}, { sessionId: 'ses-same' });
      expect(await codeOf(scene.start('42', {}, { sessionId: 'ses-same' }))).toBe('session_exists');
      expect(await codeOf(scene.start('43', {}, { sessionId: 'ses-same' }))).toBe('session_exists');
      await scene.end('ses-same');
      expect(await codeOf(scene.start('42', {}, { sessionId: 'ses-same' }))).toBe('session_exists');
      expect(await codeOf(scene.reset('42', null, { newSessionId: 'ses-same' }))).toBe('session_exists');
      expect(await codeOf(scene.say('42', 'hello', { newSessionId: 'ses-same' }))).toBe('session_exists');
      expect(await scene.types()).toEqual(['session:start', 'session:end']);
    });

    test('a start beside an open session of the same conversation is refused', async (scene) => {
      await scene.start('42');
      expect(await codeOf(scene.start('42'))).toBe('key_busy');
      expect(await scene.types()).toEqual(['session:start']);
    });

    test('the same /new again returns the session it made', async (scene) => {
      const { id: old } = await scene.start('42');
      const first = await scene.reset('42', { command: 'new', args: '' }, { newSessionId: 'ses-new' });
      const again = await scene.reset('42', { command: 'new', args: '' }, { newSessionId: 'ses-new' });
      expect(again).toEqual(first);
      expect(again.ended).toBe(old);
      expect(await scene.types()).toHaveLength(5);
    });

    test('the same /resume again returns the session it made', async (scene) => {
      const { id } = await scene.start('42');
      await scene.end(id);
      const first = await scene.continue(id, 'resume', { newSessionId: 'ses-new' });
      const again = await scene.continue(id, 'resume', { newSessionId: 'ses-new' });
      expect(again).toMatchObject({ session: first.session, created: true });
      expect(await scene.types()).toEqual(['session:start', 'session:end', 'session:start']);
    });

    test('the same plain command again changes nothing', async (scene) => {
      const { id } = await scene.start('42');
      const context = scene.context();
      const first = await scene.command(id, { name: 'note', command: 'status', args: '' }, context);
      const again = await scene.command(id, { name: 'note', command: 'status', args: '' }, context);
      expect(again).toEqual(first);
      expect(await scene.types(id)).toEqual(['session:start', 'command:status']);
    });

    test('the same finish again changes nothing', async (scene) => {
      const asked = await scene.ask('42');
      const once = {
        context: scene.context(),
        messages: [{ role: 'assistant', text: 'an answer', turnId: asked.turn.id }],
        deliveries: [{ id: 'dlv-1', platform: 'telegram', target: { chat: 42 }, text: 'an answer' }],
      };
      const first = await scene.finish(asked, {}, once);
      expect(await scene.finish(asked, {}, once)).toEqual(first);
      expect(await scene.types()).toEqual(['session:start', 'agent:start', 'agent:end']);
      expect((await scene.session(asked.session.id)).messageCount).toBe(1);
    });

    test('the same append again changes nothing, also when a message came in between', async (scene) => {
      const asked = await scene.ask('42');
      const append = () =>
        scene.store.write('appendMessages', {
          context: { instanceId: scene.instance, commandId: 'cmd-append' },
          sessionId: asked.session.id,
          epoch: asked.session.epoch,
          messages: [{ role: 'tool', text: 'a result', turnId: asked.turn.id }],
        });
      expect(await append()).toBe(1);
      expect(await append()).toBe(1);
      await scene.say('42', 'hurry');
      expect(await append()).toBe(1);
      expect((await scene.session(asked.session.id)).messageCount).toBe(1);
    });

    test('the same finish again is known also when a message came in between', async (scene) => {
      const asked = await scene.ask('42');
      const context = scene.context();
      await scene.finish(asked, {}, { context });
      await scene.say('42', 'one more thing');
      const again = await scene.finish(asked, {}, { context });
      expect(again.session.id).toBe(asked.session.id);
      expect((await scene.types()).filter((type) => type === 'agent:end')).toHaveLength(1);
    });

    test('the same note again is known also when other commands came in between', async (scene) => {
      const { id } = await scene.start('42');
      const context = scene.context();
      await scene.command(id, { name: 'note', command: 'status', args: '' }, context);
      await scene.say('42', 'one');
      await scene.command(id, { name: 'title', title: 'two' });
      await scene.command(id, { name: 'note', command: 'status', args: '' }, context);
      expect(await scene.types(id)).toEqual(['session:start', 'command:status', 'session:title']);
    });

    test('a command is known until 64 others have changed the session', async (scene) => {
      const { id } = await scene.start('42');
      const ids = timeSortedIds(Date.now, Math.random);
      const note = { name: 'note', command: 'status', args: '' } as const;
      const context = { instanceId: scene.instance, commandId: ids.command() };
      await scene.command(id, note, context);
      for (let n = 1; n < 64; n++) {
        const other = { instanceId: scene.instance, commandId: ids.command() };
        await scene.command(id, { name: 'touch', by: 'system' }, other);
      }
      await scene.command(id, note, context);
      expect(await scene.types(id)).toEqual(['session:start', 'command:status']);
      await scene.command(id, { name: 'touch', by: 'system' });
      await scene.command(id, note, context);
      expect(await scene.types(id)).toEqual(['session:start', 'command:status', 'command:status']);
    });
  });
}
