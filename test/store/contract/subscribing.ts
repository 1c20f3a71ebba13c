import { describe, expect } from 'vitest';
import { MoiraiError } from '../../../src/errors/moirai-error.ts';
import type { MoiraiEvent } from '../../../src/lifecycle/events.ts';
import type { SubscribeFrom } from '../../../src/store/transactions/subscribers.ts';
import { codeOf } from './code-of.ts';
import { type Open, type Scene, sceneTests } from './scene.ts';

/** How a subscriber comes in: with what was, and then with everything that happens, without gap or duplicate. */
export function subscribingContract(open: Open): void {
  const test = sceneTests(open);

  describe('a new subscriber', () => {
    test('from now hears what happens next', async (scene) => {
      const { id } = await scene.start('1');
      expect(await scene.subscribe('listener')).toEqual({ created: true });
      await scene.end(id);
      await scene.start('2');
      expect(typesOf(await scene.drain('listener'))).toEqual(['session:end', 'session:start']);
    });

    test('whose row is damaged keeps nobody from writing, and hears again once it has registered', async (scene) => {
      await scene.subscribe('listener');
      for (const [i, damage] of ['{', '5', '[5]', 'null'].entries()) {
        await scene.raw("UPDATE subscribers SET patterns = ? WHERE name = 'listener'", damage);
        await scene.start(`chat-${i}`);
      }
      expect(await scene.subscribe('listener')).toEqual({ created: false });
      const { id } = await scene.start('heard');
      expect(await scene.drain('listener')).toMatchObject([{ type: 'session:start', session_id: id }]);
    });

    test('from the open sessions hears their lives from the start, and no others', async (scene) => {
      await scene.end((await scene.start('1')).id);
      const open = await scene.ask('2');
      await scene.reset('3');
      await scene.reset('3');
      const followed = await scene.reset('3');
      await scene.subscribe('listener', ['*'], 'open');
      await scene.finish(open);
      const heard = await scene.drain('listener');
      expect(new Set(heard.map(({ session_id }) => session_id))).toEqual(
        new Set([open.session.id, followed.session.id]),
      );
      expect(typesOf(heard.filter(({ session_id }) => session_id === open.session.id))).toEqual([
        'session:start',
        'agent:start',
        'agent:end',
      ]);
    });

    test('from the start hears everything, instance events too', async (scene) => {
      await scene.end((await scene.start('1')).id);
      await scene.ask('2');
      const draft = { type: 'gateway:startup', fields: { platforms: [], reason: null } } as const;
      await scene.store.write('announceInstance', { context: scene.context(), event: { id: 'one:startup', draft } });
      await scene.subscribe('listener', ['*'], 'start');
      await scene.start('3');
      const heard = await scene.drain('listener');
      const all = await scene.events();
      expect(heard.map(({ id }) => id).toSorted()).toEqual(all.map(({ id }) => id).toSorted());
      expect(heard.find(({ type }) => type === 'gateway:startup')).toEqual(
        all.find(({ type }) => type === 'gateway:startup'),
      );
    });

    test('is as far as the first event it has not had, in whichever conversation', async (scene) => {
      const positions = () => scene.store.read('subscriberPositions', {});
      await scene.subscribe('listener');
      expect(await positions()).toEqual({});
      for (const chat of ['1', '2']) await scene.start(chat);
      const page = await scene.store.read('listEvents', {
        after: 0,
        limit: 9,
        types: ['session:start'],
        sessionId: null,
      });
      const [one = 0, two = 0] = page.events.map(({ seq }) => seq);
      expect(await positions()).toEqual({ listener: one - 1 });
      const [first] = await scene.claim('listener', { limit: 1 });
      if (first !== undefined) await scene.ack(first);
      expect(await positions()).toEqual({ listener: two - 1 });
      await scene.drain('listener');
      expect(await positions()).toEqual({});
    });

    test('hears only what it asked for: exact names, prefixes, commands', async (scene) => {
      await scene.subscribe('exact', ['session:end', 'command:new']);
      await scene.subscribe('prefix', ['agent:*', 'command:*']);
      await scene.subscribe('gateway', ['gateway:*']);
      await scene.ask('1');
      await scene.reset('1', { command: 'new', args: '' });
      expect(typesOf(await scene.drain('exact'))).toEqual(['command:new', 'session:end']);
      expect(typesOf(await scene.drain('prefix'))).toEqual(['agent:start', 'command:new', 'agent:end']);
      expect(await scene.drain('gateway')).toEqual([]);
    });

    test('that registers again keeps its place, and may listen to something else', async (scene) => {
      await scene.subscribe('listener', ['session:start']);
      const { id } = await scene.start('1');
      expect(await scene.subscribe('listener', ['session:*'], 'start')).toEqual({ created: false });
      await scene.end(id);
      expect(typesOf(await scene.drain('listener'))).toEqual(['session:start', 'session:end']);
      expect(await scene.store.read('listSubscribers', {})).toMatchObject([
        { name: 'listener', patterns: ['session:*'] },
      ]);
    });

    test('that is removed leaves nothing behind', async (scene) => {
      await scene.subscribe('listener');
      await scene.start('1');
      const [lane] = await scene.claim('listener');
      if (lane) await scene.fail(lane, { dead: true });
      await scene.start('2');
      await scene.store.write('unsubscribe', { name: 'listener' });
      expect(await scene.store.read('listSubscribers', {})).toEqual([]);
      expect(await scene.store.read('listDeadLetters', { subscriber: null, limit: 10 })).toEqual([]);
      expect(await scene.claim('listener')).toEqual([]);
      await scene.subscribe('listener');
      expect(await scene.drain('listener')).toEqual([]);
    });

    test('that listens for what no event can be is refused with the nearest name', async (scene) => {
      const refused = await scene.subscribe('listener', ['session:start', 'session:ended']).catch((error) => error);
      expect(refused).toBeInstanceOf(MoiraiError);
      expect(refused).toMatchObject({ code: 'unknown_event', details: { nearest: 'session:end' } });
      expect(refused.message).toContain('did you mean "session:end"?');
      for (const pattern of ['', 'session', 'session:', 'sessions:*', 'command:', 'command:New', '**', ':*', 's*']) {
        expect([pattern, await codeOf(scene.subscribe('listener', [pattern]))]).toEqual([pattern, 'unknown_event']);
      }
      expect(await codeOf(scene.subscribe('listener', []))).toBe('bad_input');
      expect(await scene.store.read('listSubscribers', {})).toEqual([]);
    });
  });

  describe('a subscriber that comes while writers are busy', () => {
    for (const from of ['now', 'open', 'start'] as const) {
      test(`from ${from} hears each conversation whole from where it begins`, async (scene) => {
        await whileBusy(scene, from);
      });
    }
  });
}

/** Registers in the middle of many writes, and compares what was heard with the log, conversation by conversation. */
async function whileBusy(scene: Scene, from: SubscribeFrom): Promise<void> {
  const writers = [scene, await scene.joinedBy('two'), await scene.joinedBy('three')];
  const chats = Array.from({ length: 12 }, (_, i) => `${i}`);
  await Promise.all(chats.map((chat) => scene.start(chat)));
  const work = chats.map(async (chat, i) => {
    const writer = writers[i % writers.length] as Scene;
    for (let round = 0; round < 6; round++) {
      const { session } = await writer.reset(chat, { command: 'new', args: '' });
      await writer.command(session.id, { name: 'note', command: 'status', args: '' });
    }
  });
  // Somewhere in the middle: after one conversation has come to its second round.
  while ((await scene.events(null, ['session:end'])).length < chats.length);
  await scene.subscribe('listener', ['*'], from);
  await Promise.all(work);

  const heard = byKey(await scene.drain('listener'));
  for (const [key, log] of byKey(await scene.events())) {
    const part = heard.get(key) ?? [];
    // No gap and no duplicate: what was heard is the end of the log, whole.
    expect(part.map(({ id }) => id)).toEqual(log.slice(log.length - part.length).map(({ id }) => id));
    if (from === 'start') expect(part).toHaveLength(log.length);
    if (from === 'open') expect(part[0]?.type).toBe('session:start');
  }
}

function byKey(events: readonly MoiraiEvent[]): Map<string, MoiraiEvent[]> {
  return Map.groupBy(events, ({ session_key }) => session_key ?? '');
}

function typesOf(events: readonly MoiraiEvent[]): string[] {
  return events.map(({ type }) => type);
}
