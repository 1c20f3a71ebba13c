import { describe, expect } from 'vitest';
import { MAX_TEXT_CHARS } from '../../../src/store/limits.ts';
import { codeOf } from './code-of.ts';
import { type Open, type Scene, sceneTests } from './scene.ts';

/** No UTF-8 has a lone surrogate, and PostgreSQL has no NUL. */
const ODD = 'a\ud800b\u0000c\udfff';
const KEPT = 'a\ufffdb\ufffdc\ufffd';

/** What people and platforms send that no table was made for: each time a correct result or a coded error. */
export function oddInputContract(open: Open): void {
  const test = sceneTests(open);

  describe('text that cannot be stored as it is', () => {
    test('is kept with a sign in place of what cannot be, in messages and in what events tell of them', async (scene) => {
      const asked = await scene.ask('1', ODD);
      const messages = [{ role: 'user', text: ODD, turnId: asked.turn.id, data: { odd: ODD } }];
      const deliveries = [{ id: 'dlv', platform: 'telegram', target: { name: ODD }, text: ODD }];
      await scene.finish(asked, { response: ODD, model: ODD, outcome: 'failed' }, { messages, deliveries, error: ODD });
      const [stored] = await scene.store.read('listMessages', { sessionId: asked.session.id, after: 0, limit: 1 });
      expect(stored).toMatchObject({ text: KEPT, data: { odd: KEPT } });
      expect(await scene.store.read('turnText', { turnId: asked.turn.id })).toBe(KEPT);
      const [, started, ended] = await scene.events(asked.session.id);
      expect(started).toMatchObject({ message: KEPT });
      expect(ended).toMatchObject({ message: KEPT, response: KEPT, model: KEPT });
      const [lane] = await scene.claimReplies();
      expect(lane?.deliveries).toMatchObject([{ target: { name: KEPT }, text: KEPT }]);
      if (lane !== undefined) await scene.settleReply(lane, { state: 'failed', error: ODD });
      expect((await scene.events()).at(-1)).toMatchObject({ type: 'delivery:failed', error: KEPT });
    });

    test('is the same in the row of a session as in its events', async (scene) => {
      const odd = { userId: ODD, origin: { name: ODD, deep: [{ key: ODD }] } };
      const { id } = await scene.start('1', odd, { title: ODD });
      const origin = { name: KEPT, deep: [{ key: KEPT }] };
      expect(await scene.session(id)).toMatchObject({ title: KEPT, userId: KEPT, origin });
      await scene.command(id, { name: 'title', title: `2 ${ODD}` });
      await scene.command(id, { name: 'note', command: 'say', args: ODD });
      expect(await scene.session(id)).toMatchObject({ title: `2 ${KEPT}` });
      expect(await scene.events(id)).toMatchObject([
        { type: 'session:start', user_id: KEPT, origin },
        { type: 'session:title', user_id: KEPT, title: `2 ${KEPT}` },
        { type: 'command:say', args: KEPT },
      ]);
      const { session } = await scene.reset('1', { command: 'new', args: ODD }, { title: `3 ${ODD}` });
      expect(session.title).toBe(`3 ${KEPT}`);
    });

    test('names a message of a platform as well as any other', async (scene) => {
      const first = await scene.say('1', 'hello', { originRef: ODD });
      const again = await scene.say('1', 'hello', { originRef: ODD });
      expect(again).toMatchObject({ duplicate: true, turn: { id: first.turn.id } });
    });

    test('is found, or not, where something is looked for', async (scene) => {
      const { id } = await scene.start('1', { userId: ODD }, { title: ODD });
      const none = { states: [], kinds: [], platforms: [], reasons: [], since: null, limit: 9, cursor: null };
      const list = async (filter: object) => {
        const args = { ...none, key: null, user: null, text: null, ...filter };
        return (await scene.store.read('listSessions', args)).sessions.map((session) => session.id);
      };
      expect(await list({ user: ODD })).toEqual([id]);
      expect(await list({ text: ODD })).toEqual([id]);
      expect(await list({ key: ODD })).toEqual([]);
      expect(await list({ states: [ODD], kinds: [ODD] })).toEqual([]);
      expect(await codeOf(list({ cursor: ODD }))).toBe('bad_input');
      expect(await codeOf(list({ cursor: `1_${ODD}` }))).toBe('no error');
      expect(await codeOf(list({ cursor: `${'9'.repeat(400)}_x` }))).toBe('bad_input');
      expect(await scene.store.read('getSession', { sessionId: ODD })).toBeNull();
      expect(await codeOf(scene.store.read('findSession', { idOrPrefix: ODD }))).toBe('session_not_found');
      expect(await scene.events(ODD)).toEqual([]);
      expect(await scene.events(null, [ODD, `${ODD}:*`])).toEqual([]);
      expect(await scene.store.read('searchMessages', { text: ODD, limit: 5 })).toEqual([]);
      expect(await codeOf(scene.end(ODD))).toBe('session_not_found');
    });

    test('in the name of a subscriber and in its errors is kept the same way', async (scene) => {
      await scene.subscribe(ODD);
      await scene.start('1');
      const [lane] = await scene.claim(ODD);
      if (lane) await scene.fail(lane, { error: ODD, dead: true });
      expect(await scene.store.read('listDeadLetters', { subscriber: ODD, limit: 5 })).toMatchObject([
        { subscriber: KEPT, error: KEPT },
      ]);
      expect(await scene.events(null, ['hook:failed'])).toMatchObject([{ subscriber: KEPT, error: KEPT }]);
    });
  });

  describe('a key', () => {
    const bad = [
      ...['', 'agent', 'agent:main:telegram', 'user:main:telegram:dm:1', 'agent:main:telegram:lobby:1'],
      ...['agent:main:telegram:dm:../../etc/passwd', 'agent:main:telegram:dm:..', 'agent:../x:telegram:dm:1'],
      ...['agent:main:telegram:dm:/etc', 'agent:main:telegram:dm:C:\\x', 'agent:main:Telegram:dm:1'],
      ...['agent:main:telegram:dm:a\nb', 'agent:main:telegram:dm:a\u0000b', 'agent:main:telegram:dm:a\u001b[31m'],
      ...['agent:main:telegram:dm:\ud800', 'agent:main:telegram:dm:a\u202eb', 'agent:main:telegram:dm:%2e%2e'],
      ...[`agent:main:telegram:dm:${'x'.repeat(2000)}`, 'agent:main:telegram:dm:1:2:3:4:5'],
    ];

    test('that is none, leads out of its place or hides something is refused, and nothing is written', async (scene) => {
      const { id } = await scene.start('1');
      await scene.end(id);
      for (const key of bad) {
        const conversation = scene.conversation('1', { key });
        const attempts = [
          scene.say('1', 'hello', { conversation }),
          scene.start('1', { key }),
          scene.reset('1', null, { conversation }),
          scene.continue(id, 'resume', { conversation }),
        ];
        expect([key, ...(await Promise.all(attempts.map(codeOf)))]).toEqual([key, ...attempts.map(() => 'bad_key')]);
      }
      expect(await scene.types()).toEqual(['session:start', 'session:end']);
    });
  });

  describe('an unknown id', () => {
    test('is said to be unknown, by everything that takes one', async (scene) => {
      const { session } = await scene.say('1', 'hello');
      const unknown = { id: 'ses-unknown', epoch: 1 };
      const codes = {
        end: scene.end(unknown.id),
        command: scene.command(unknown.id, { name: 'suspend', reason: 'operator' }),
        finish: scene.finish({ session: unknown, turn: { id: 'trn' } }),
        continue: scene.continue(unknown.id, 'resume'),
        find: scene.store.read('findSession', { idOrPrefix: unknown.id }),
        append: append(scene, unknown.id, 'x'),
        turn: scene.begin(session.id, 'trn-unknown'),
      };
      const entries = Object.entries(codes).map(async ([name, action]) => [name, await codeOf(action)]);
      expect(Object.fromEntries(await Promise.all(entries))).toEqual({
        end: 'session_not_found',
        command: 'session_not_found',
        finish: 'session_not_found',
        continue: 'session_not_found',
        find: 'session_not_found',
        append: 'session_not_found',
        turn: 'turn_not_found',
      });
      expect(await scene.store.read('getTurn', { turnId: 'trn-unknown' })).toBeNull();
      expect(await scene.store.read('turnText', { turnId: 'trn-unknown' })).toBeNull();
      expect(await scene.store.read('lineageOf', { sessionId: 'ses-unknown' })).toEqual(['ses-unknown']);
    });
  });

  describe('a very long text', () => {
    test('of ten megabytes is kept whole', async (scene) => {
      const long = `${'Fäden 🧵 '.repeat(1_100_000)}`;
      expect(Buffer.byteLength(long)).toBeGreaterThan(10_000_000);
      const asked = await scene.ask('1', long);
      expect(await scene.store.read('turnText', { turnId: asked.turn.id })).toBe(long);
      const deliveries = [{ id: 'dlv', platform: 'telegram', target: {}, text: long }];
      const messages = [{ role: 'user', text: long, turnId: null }];
      await scene.finish(asked, { response: long }, { messages, deliveries });
      const [stored] = await scene.store.read('listMessages', { sessionId: asked.session.id, after: 0, limit: 1 });
      expect(stored?.text).toBe(long);
      const [lane] = await scene.claimReplies();
      expect(lane?.deliveries[0]?.text).toBe(long);
      const [, started, ended] = await scene.events(asked.session.id);
      expect([started?.message, ended?.response]).toEqual([long.slice(0, 500), long.slice(0, 500)]);
    });

    test('over the limit is refused wherever it stands, and nothing is written', async (scene) => {
      const long = 'x'.repeat(MAX_TEXT_CHARS + 1);
      const asked = await scene.ask('1');
      const attempts = [
        () => scene.say('1', long),
        () => scene.finish(asked, { response: long }),
        () => scene.finish(asked, {}, { error: long }),
        () => append(scene, asked.session.id, long),
        () => scene.command(asked.session.id, { name: 'title', title: long }),
      ];
      for (const attempt of attempts) expect(await codeOf(attempt())).toBe('message_too_large');
      expect(await scene.types()).toEqual(['session:start', 'agent:start']);
      await scene.finish(asked);
    });

    test('as the name of a message is kept or refused with a code', async (scene) => {
      const originRef = Array.from({ length: 2000 }, (_, i) => i.toString(36)).join('-');
      const code = await codeOf(scene.say('1', 'hello', { originRef }));
      expect(['no error', 'bad_input']).toContain(code);
      if (code === 'no error') expect((await scene.say('1', 'hello', { originRef })).duplicate).toBe(true);
    });
  });
}

function append(scene: Scene, sessionId: string, text: string): Promise<number> {
  const messages = [{ role: 'user', text, turnId: null }];
  return scene.store.write('appendMessages', { context: scene.context(), sessionId, epoch: null, messages });
}
