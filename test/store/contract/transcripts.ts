import { describe, expect } from 'vitest';
import { codeOf } from './code-of.ts';
import { type Open, type Scene, sceneTests } from './scene.ts';

/** What was said: kept in order, found again, seen by those who continue it. */
export function transcriptsContract(open: Open): void {
  const test = sceneTests(open);

  describe('a transcript', () => {
    test('is kept in order, in the middle of a turn and at its end', async (scene) => {
      const asked = await scene.ask('42', 'spin');
      const { id, epoch } = asked.session;
      const turnId = asked.turn.id;
      const data = { tool: 'wheel', args: { turns: 3 }, 'odd "key"': [null, 1.5, '🧵'] };
      const steps = [
        { role: 'user', text: 'spin', turnId },
        { role: 'tool', text: 'spun', turnId, data },
      ];
      const count = await scene.store.write('appendMessages', {
        context: scene.context(),
        sessionId: id,
        epoch,
        messages: steps,
      });
      expect(count).toBe(2);
      await scene.finish(asked, {}, { messages: [{ role: 'assistant', text: 'done', turnId }] });
      const messages = await scene.store.read('listMessages', { sessionId: id, after: 0, limit: 10 });
      expect(messages.map(({ position, role, text }) => [position, role, text])).toEqual([
        [1, 'user', 'spin'],
        [2, 'tool', 'spun'],
        [3, 'assistant', 'done'],
      ]);
      expect(messages[1]).toMatchObject({ sessionId: id, turnId, data });
      expect(messages[0]?.data).toBeNull();
      expect((await scene.session(id)).messageCount).toBe(3);
      expect(await scene.types(id)).toEqual(['session:start', 'agent:start', 'agent:end']);
    });

    test('is read page by page', async (scene) => {
      const { id } = await scene.start('42');
      await write(scene, id, ['one', 'two', 'three', 'four', 'five']);
      const page = async (after: number, limit: number) =>
        (await scene.store.read('listMessages', { sessionId: id, after, limit })).map(({ text }) => text);
      expect(await page(0, 2)).toEqual(['one', 'two']);
      expect(await page(2, 2)).toEqual(['three', 'four']);
      expect(await page(4, 2)).toEqual(['five']);
      expect(await page(5, 2)).toEqual([]);
      expect((await page(0, 0)).length).toBeLessThanOrEqual(1);
      expect((await page(0, -1)).length).toBeLessThanOrEqual(1);
    });

    test('takes thousands of messages at once', async (scene) => {
      const { id } = await scene.start('42');
      const texts = Array.from({ length: 12_000 }, (_, i) => `message ${i}`);
      await write(scene, id, texts);
      expect((await scene.session(id)).messageCount).toBe(texts.length);
      const page = await scene.store.read('listMessages', { sessionId: id, after: 11_998, limit: 10 });
      expect(page.map(({ text }) => text)).toEqual(['message 11998', 'message 11999']);
    });

    test('of a resumed or branched session goes on from those before it; that of a reset one does not', async (scene) => {
      const first = await scene.start('42');
      const second = (await scene.continue(first.id, 'branch')).session;
      await scene.end(second.id);
      const third = (await scene.continue(second.id, 'resume')).session;
      const fresh = (await scene.reset('42')).session;
      const last = (await scene.continue(fresh.id, 'branch')).session;
      const lineage = (sessionId: string) => scene.store.read('lineageOf', { sessionId });
      expect(await lineage(third.id)).toEqual([first.id, second.id, third.id]);
      expect(await lineage(fresh.id)).toEqual([fresh.id]);
      expect(await lineage(last.id)).toEqual([fresh.id, last.id]);
      expect(await lineage(first.id)).toEqual([first.id]);
    });
  });

  describe('a search', () => {
    test('finds the messages that have all its words, in any case and order', async (scene) => {
      const { id } = await scene.start('42');
      await write(scene, id, ['The Loom stands still', 'a loom and a wheel', 'a wheel alone']);
      expect(await found(scene, 'loom')).toEqual(['The Loom stands still', 'a loom and a wheel']);
      expect(await found(scene, 'WHEEL loom')).toEqual(['a loom and a wheel']);
      expect(await found(scene, 'shears')).toEqual([]);
    });

    test('finds words of every script', async (scene) => {
      const { id } = await scene.start('42');
      const texts = ['Der Faden der Schicksalsgöttin reißt', 'нить судьбы', '運命の糸', 'مصير الخيط', 'μοῖρα Κλωθώ'];
      await write(scene, id, texts);
      expect(await found(scene, 'Schicksalsgöttin')).toEqual([texts[0]]);
      expect(await found(scene, 'reißt Faden')).toEqual([texts[0]]);
      expect(await found(scene, 'судьбы')).toEqual([texts[1]]);
      expect(await found(scene, 'НИТЬ')).toEqual([texts[1]]);
      expect(await found(scene, '運命の糸')).toEqual([texts[2]]);
      expect(await found(scene, 'الخيط')).toEqual([texts[3]]);
      expect(await found(scene, 'Κλωθώ')).toEqual([texts[4]]);
    });

    test('takes quotes and operators for what they are: text', async (scene) => {
      const { id } = await scene.start('42');
      await write(scene, id, ['say "thread" or nothing', 'a near miss']);
      const queries = [
        ...['"thread', 'thread"', "thread'", 'thread*', '(thread', 'thread)', 'thread & | !', '^thread', 'thread:'],
        ...['say:thread', 'thread -- ', 'thread;', 'thread \\', '{thread}', 'thread <-> say', ':* thread', 'thread ""'],
      ];
      for (const query of queries)
        expect([query, await found(scene, query)]).toEqual([query, ['say "thread" or nothing']]);
      for (const query of ['NOT thread', 'thread AND near', 'thread NEAR miss', 'text:thread']) {
        expect([query, await found(scene, query)]).toEqual([query, []]);
      }
    });

    test('without a word in it is refused', async (scene) => {
      for (const text of ['', '   ', '"', '* ( ) -- !']) {
        expect(await codeOf(scene.store.read('searchMessages', { text, limit: 10 }))).toBe('bad_input');
      }
    });

    test('finds no more than it is asked for', async (scene) => {
      const { id } = await scene.start('42');
      await write(
        scene,
        id,
        Array.from({ length: 30 }, (_, i) => `thread ${i}`),
      );
      while (await scene.store.write('indexMessages', { limit: 7 }));
      const messages = await scene.store.read('searchMessages', { text: 'thread', limit: 4 });
      expect(messages).toHaveLength(4);
    });

    test('finds words in the beginning of a very long message', async (scene) => {
      const { id } = await scene.start('42');
      const long = `needle ${'hay '.repeat(500_000)}`;
      await write(scene, id, [long]);
      expect(await found(scene, 'needle')).toEqual([long]);
    });
  });
}

function write(scene: Scene, sessionId: string, texts: readonly string[]): Promise<number> {
  const messages = texts.map((text) => ({ role: 'user', text, turnId: null }));
  return scene.store.write('appendMessages', { context: scene.context(), sessionId, epoch: null, messages });
}

/** The texts found, in the order they were written. */
async function found(scene: Scene, text: string): Promise<string[]> {
  while (await scene.store.write('indexMessages', { limit: 100 }));
  const messages = await scene.store.read('searchMessages', { text, limit: 100 });
  return messages.toSorted((a, b) => a.position - b.position).map((message) => message.text);
}
