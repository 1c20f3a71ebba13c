import { describe, expect } from 'vitest';
import type { MoiraiEvent } from '../../../src/lifecycle/events.ts';
import type { Session } from '../../../src/lifecycle/session.ts';
import { codeOf } from './code-of.ts';
import { type Open, sceneTests } from './scene.ts';

const ISO: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const NUMBER: unknown = expect.any(Number);

/** An event of a session, whole: nothing missing, nothing else. */
function eventOf(session: Session, seq: number, type: string, fields: object): unknown {
  return {
    id: `${session.id}:${seq}`,
    session_seq: seq,
    type,
    at: ISO,
    session_id: session.id,
    session_key: session.key,
    platform: 'telegram',
    user_id: 'ada',
    kind: 'chat',
    instance: 'one',
    ...fields,
  };
}

const turnFields = (turnId: string, message: string) => ({
  turn_id: turnId,
  chat_id: '42',
  thread_id: null,
  chat_type: 'dm',
  message,
});

/** What a session says of itself from its start to its end, event by event and field by field. */
export function livesContract(open: Open): void {
  const test = sceneTests(open);

  describe('a life', () => {
    test('a message starts a session, runs a turn and is told to the end, in whole events', async (scene) => {
      const origin = { chat: 42, name: 'Ada' };
      const asked = await scene.ask('42', 'hello', { conversation: scene.conversation('42', { origin }) });
      expect(asked).toMatchObject({ begun: true, started: true, ended: null, duplicate: false });
      expect(asked.session).toMatchObject({ state: 'open', owner: 'one', epoch: 1, expiresAt: null });
      const messages = [
        { role: 'user', text: 'hello', turnId: asked.turn.id },
        { role: 'assistant', text: 'an answer', turnId: asked.turn.id },
      ];
      const { session } = await scene.finish(asked, {}, { messages });
      expect(session).toMatchObject({ state: 'open', owner: null, messageCount: 2, tokensIn: 10, tokensOut: 5 });
      await scene.end(session.id, 'admin_close', { trigger: 'api' });

      const turn = turnFields(asked.turn.id, 'hello');
      const result = { outcome: 'done', response: 'an answer', model: 'loom-1', usage: { input: 10, output: 5 } };
      expect(await scene.events(session.id)).toEqual([
        eventOf(session, 1, 'session:start', { parent_id: null, lineage: null, origin }),
        eventOf(session, 2, 'agent:start', turn),
        eventOf(session, 3, 'agent:end', { ...turn, ...result }),
        eventOf(session, 4, 'session:end', {
          reason: 'admin_close',
          cause: null,
          trigger: 'api',
          duration_ms: NUMBER,
          message_count: 2,
          successor_id: null,
        }),
      ]);
    });

    test('an explicit start makes the same event, with its parent and lineage', async (scene) => {
      const session = await scene.start('42', {}, { parentId: 'ses-old', lineage: 'spawn', title: 'a thread' });
      expect(session).toMatchObject({ state: 'open', title: 'a thread', owner: null, epoch: 0, seq: 1 });
      expect(await scene.events(session.id)).toEqual([
        eventOf(session, 1, 'session:start', { parent_id: 'ses-old', lineage: 'spawn', origin: null }),
      ]);
    });

    test('title, compression and slash commands are told', async (scene) => {
      const { id } = await scene.start('42');
      await scene.command(id, { name: 'title', title: 'weaving' });
      await scene.command(id, { name: 'compress', beforeTokens: 900, afterTokens: 90, count: 1, epoch: null });
      const { session } = await scene.command(id, { name: 'note', command: 'usage', args: 'today' });
      expect(session).toMatchObject({ title: 'weaving', seq: 4, state: 'open' });
      expect((await scene.events(id)).slice(1)).toEqual([
        eventOf(session, 2, 'session:title', { title: 'weaving' }),
        eventOf(session, 3, 'session:compress', { before_tokens: 900, after_tokens: 90, count: 1 }),
        eventOf(session, 4, 'command:usage', { command: 'usage', args: 'today' }),
      ]);
    });

    test('a cut turn waits, and goes on under the same turn id', async (scene) => {
      const asked = await scene.ask('42', 'long work');
      const { session, turns } = await scene.cut(asked.session.id, 'restart', asked.session.epoch);
      expect(session).toMatchObject({ state: 'resume_pending', resumeReason: 'restart', owner: null, cuts: 1 });
      expect(turns).toMatchObject([{ id: asked.turn.id, state: 'cut', cuts: 1 }]);
      const resumed = await scene.begin(session.id, asked.turn.id);
      expect(resumed.session).toMatchObject({ state: 'open', owner: 'one', epoch: 2, resumeReason: null });
      await scene.finish({ session: resumed.session, turn: asked.turn });

      const turn = turnFields(asked.turn.id, 'long work');
      const cutShort = { outcome: 'interrupted', response: null, model: null, usage: null };
      const [, , ...rest] = await scene.events(session.id);
      expect(rest.slice(0, 4)).toEqual([
        eventOf(session, 3, 'agent:end', { ...turn, ...cutShort }),
        eventOf(session, 4, 'session:resume_pending', { reason: 'restart', turn_id: asked.turn.id }),
        eventOf(session, 5, 'session:resume', { turn_id: asked.turn.id }),
        eventOf(session, 6, 'agent:start', turn),
      ]);
      expect(rest[4]).toMatchObject({ type: 'agent:end', outcome: 'done', session_seq: 7 });
      expect(await scene.session(session.id)).toMatchObject({ state: 'open', cuts: 0 });
    });

    test('newer text takes the place of the turn that was cut', async (scene) => {
      const asked = await scene.ask('42');
      await scene.cut(asked.session.id);
      const newer = await scene.say('42', 'never mind, this instead', { begin: true });
      expect(newer).toMatchObject({ begun: false, session: { state: 'resume_pending' } });
      await scene.begin(asked.session.id, newer.turn.id);
      expect(await scene.store.read('getTurn', { turnId: asked.turn.id })).toMatchObject({
        state: 'over',
        outcome: 'interrupted',
      });
      const resume = (await scene.events(asked.session.id)).find(({ type }) => type === 'session:resume');
      expect(resume).toMatchObject({ turn_id: newer.turn.id });
    });

    test('the third cut in a row gives resume_pending, then suspend, and the turn fails', async (scene) => {
      const asked = await scene.ask('42');
      const { id } = asked.session;
      for (let cut = 1; cut <= 2; cut++) {
        await scene.cut(id, 'crash');
        await scene.begin(id, asked.turn.id);
      }
      const { session, turns } = await scene.cut(id, 'crash');
      expect(session).toMatchObject({ state: 'suspended', cuts: 3, owner: null, resumeReason: null });
      expect(turns).toEqual([]);
      expect(await scene.store.read('getTurn', { turnId: asked.turn.id })).toMatchObject({
        state: 'over',
        outcome: 'failed',
        cuts: 3,
      });
      expect((await scene.events(id)).slice(-4)).toMatchObject([
        { type: 'agent:end', outcome: 'interrupted' },
        { type: 'session:resume_pending', reason: 'crash', turn_id: asked.turn.id },
        { type: 'session:suspend', reason: 'stuck_loop' },
        { type: 'work:set_aside', work: 'turn', id: asked.turn.id, attempts: 3 },
      ]);
      expect(await codeOf(scene.begin(id, asked.turn.id))).toBe('illegal_move');
    });

    test('a finished turn sets the count of cuts back', async (scene) => {
      const asked = await scene.ask('42');
      const { id } = asked.session;
      for (let cut = 1; cut <= 2; cut++) {
        await scene.cut(id, 'crash');
        await scene.begin(id, asked.turn.id);
      }
      await scene.finish({ session: await scene.session(id), turn: asked.turn });
      await scene.ask('42', 'once more');
      expect((await scene.cut(id, 'crash')).session).toMatchObject({ state: 'resume_pending', cuts: 1 });
    });

    test('an operator suspends a session in the middle of a turn', async (scene) => {
      const asked = await scene.ask('42');
      const waiting = await scene.say('42', 'and this');
      const { session, turns } = await scene.command(asked.session.id, { name: 'suspend', reason: 'operator' });
      expect(session).toMatchObject({ state: 'suspended', suspendReason: 'operator', owner: null, expiresAt: null });
      expect(turns).toMatchObject([{ id: waiting.turn.id, state: 'queued' }]);
      expect((await scene.events(session.id)).slice(-2)).toMatchObject([
        { type: 'agent:end', outcome: 'interrupted', turn_id: asked.turn.id },
        { type: 'session:suspend', reason: 'operator', turn_id: asked.turn.id },
      ]);
    });

    test('what a person wrote stays in the transcript when their turn is ended from outside', async (scene) => {
      const parked = await scene.ask('1', 'parked');
      await scene.command(parked.session.id, { name: 'suspend', reason: 'operator' });
      const ended = await scene.ask('2', 'ended');
      await scene.end(ended.session.id);
      const replaced = await scene.ask('3', 'replaced');
      await scene.reset('3', { command: 'new', args: '' });
      const kept = await scene.ask('4', 'kept once');
      await scene.store.write('appendMessages', {
        ...{ context: scene.context(), sessionId: kept.session.id, epoch: kept.session.epoch },
        messages: [{ role: 'user', text: 'kept once', turnId: kept.turn.id }],
      });
      await scene.command(kept.session.id, { name: 'suspend', reason: 'operator' });
      const stuck = await scene.ask('5', 'stuck');
      await scene.cut(stuck.session.id);
      for (const _ of [2, 3]) {
        await scene.begin(stuck.session.id, stuck.turn.id);
        await scene.cut(stuck.session.id);
      }
      for (const { session, turn } of [parked, ended, replaced, kept, stuck]) {
        const rows = await scene.store.read('listMessages', { sessionId: session.id, after: 0, limit: 9 });
        expect(rows).toMatchObject([{ role: 'user', text: turn.text, turnId: turn.id }]);
        expect((await scene.session(session.id)).messageCount).toBe(1);
      }
    });

    test('turns wait for each other, first come first served, and a waiting one can be dropped silently', async (scene) => {
      const first = await scene.ask('42', 'one');
      const second = await scene.say('42', 'two', { begin: true });
      const third = await scene.say('42', 'three', { begin: true });
      expect([second.begun, third.begun]).toEqual([false, false]);
      expect(await codeOf(scene.begin(first.session.id, second.turn.id))).toBe('illegal_move');
      await scene.finish(
        { session: { ...first.session, epoch: first.session.epoch }, turn: second.turn },
        { outcome: 'failed' },
        { epoch: null },
      );
      const { turns } = await scene.finish(first);
      expect(turns).toMatchObject([{ id: third.turn.id, state: 'queued' }]);
      expect(await scene.types(first.session.id)).toEqual(['session:start', 'agent:start', 'agent:end']);
      expect(await codeOf(scene.begin(first.session.id, second.turn.id))).toBe('turn_not_found');
    });

    test('messages in events are cut at 500 characters and never in the middle of one', async (scene) => {
      const long = `${'x'.repeat(499)}🧵${'y'.repeat(700)}`;
      const asked = await scene.ask('42', long);
      await scene.finish(asked, { response: long });
      const [, started, ended] = await scene.events(asked.session.id);
      const beginning = 'x'.repeat(499);
      expect(started?.message).toBe(beginning);
      expect(ended).toMatchObject({ message: beginning, response: beginning });
      expect(await scene.store.read('turnText', { turnId: asked.turn.id })).toBe(long);
    });

    test('the numbers of a session are dense, whatever happens in it', async (scene) => {
      const asked = await scene.ask('42');
      await scene.command(asked.session.id, { name: 'note', command: 'status', args: '' });
      await scene.cut(asked.session.id);
      await scene.begin(asked.session.id, asked.turn.id);
      await scene.command(asked.session.id, { name: 'touch', by: 'user' });
      await scene.command(asked.session.id, { name: 'suspend', reason: 'operator' });
      await scene.say('42', 'again');
      const events = await scene.events(asked.session.id);
      expect(events.map(({ session_seq }) => session_seq)).toEqual(events.map((_, i) => i + 1));
      expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => `${asked.session.id}:${i + 1}`));
      expect((await scene.session(asked.session.id)).seq).toBe(events.length);
    });

    test('a thread in a guild names its chat, thread and type in the events of a turn', async (scene) => {
      const key = 'agent:main:discord:thread:G1:C1:5';
      const asked = await scene.ask('', 'hi', { conversation: scene.conversation('', { key, platform: 'discord' }) });
      const [, started] = await scene.events(asked.session.id);
      expect(started).toMatchObject({ chat_id: 'C1', thread_id: '5', chat_type: 'thread', platform: 'discord' });
    });

    test('instance events belong to no session and take no number', async (scene) => {
      const draft = { type: 'gateway:startup', fields: { platforms: ['telegram'], reason: null } } as const;
      await scene.store.write('announceInstance', { context: scene.context(), event: { id: 'one:startup', draft } });
      const expected: MoiraiEvent = {
        id: 'one:startup',
        session_seq: null,
        type: 'gateway:startup',
        at: ISO as string,
        session_id: null,
        session_key: null,
        platform: null,
        user_id: null,
        kind: null,
        instance: 'one',
        platforms: ['telegram'],
        reason: null,
      };
      expect(await scene.events()).toEqual([expected]);
    });

    test('what is refused leaves nothing behind', async (scene) => {
      const asked = await scene.ask('42');
      const before = await scene.session(asked.session.id);
      const wrong = { session: { id: asked.session.id, epoch: 99 }, turn: asked.turn };
      const message = { role: 'user', text: 'x', turnId: null };
      expect(await codeOf(scene.finish(wrong, {}, { messages: [message] }))).toBe('fenced');
      expect(await codeOf(scene.begin(asked.session.id, 'no-such-turn'))).toBe('turn_not_found');
      expect(await codeOf(scene.end(asked.session.id, 'tired' as never))).toBe('bad_reason');
      expect(await scene.session(asked.session.id)).toEqual(before);
      expect(await scene.types()).toEqual(['session:start', 'agent:start']);
      expect(await scene.store.read('listMessages', { sessionId: before.id, after: 0, limit: 10 })).toEqual([]);
    });
  });
}
