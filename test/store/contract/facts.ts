import { describe, expect } from 'vitest';
import { codeOf } from './code-of.ts';
import { type Open, type Scene, sceneTests } from './scene.ts';

/** What is remembered about people: found by its words, and by nobody else. */
export function factsContract(open: Open): void {
  const test = sceneTests(open);

  describe('a fact', () => {
    test('is recalled by any of its words, the best match first', async (scene) => {
      await remember(scene, 'ada', 'f1', 'Ada weaves linen on Tuesdays');
      await remember(scene, 'ada', 'f2', 'The linen comes from Bruges, by barge, and the linen is dear');
      await remember(scene, 'ada', 'f3', 'Her loom is called Lachesis');
      expect(await recalled(scene, 'ada', 'what is the LOOM called?')).toContain('f3');
      expect((await recalled(scene, 'ada', 'lachesis loom'))[0]).toBe('f3');
      expect((await recalled(scene, 'ada', 'linen')).toSorted()).toEqual(['f1', 'f2']);
      expect((await recalled(scene, 'ada', 'tuesdays, linen'))[0]).toBe('f1');
      expect(await recalled(scene, 'ada', 'shears')).toEqual([]);
    });

    test('is recalled in every script, with and without accents, and inside addresses', async (scene) => {
      await remember(scene, 'ada', 'f1', 'Der Faden der Schicksalsgöttin reißt');
      await remember(scene, 'ada', 'f2', 'нить судьбы');
      await remember(scene, 'ada', 'f3', 'write to clotho@spindle.example');
      expect(await recalled(scene, 'ada', 'schicksalsgottin')).toEqual(['f1']);
      expect(await recalled(scene, 'ada', 'Schicksalsgöttin')).toEqual(['f1']);
      expect(await recalled(scene, 'ada', 'НИТЬ')).toEqual(['f2']);
      expect(await recalled(scene, 'ada', 'spindle')).toEqual(['f3']);
    });

    test('takes quotes and operators in a question for what they are', async (scene) => {
      await remember(scene, 'ada', 'f1', 'thread');
      for (const text of ['"thread', "thread'", 'thread*', '(thread', 'NOT thread', 'a & thread | !', 'words:thread']) {
        expect([text, await recalled(scene, 'ada', text)]).toEqual([text, ['f1']]);
      }
    });

    test('is never given to another owner, nor forgotten by one', async (scene) => {
      await remember(scene, 'ada', 'f1', 'a secret thread');
      await remember(scene, 'bob', 'f1', 'another thread');
      expect(await recalled(scene, 'bob', 'secret thread')).toEqual(['f1']);
      expect((await recall(scene, 'bob', 'secret thread'))[0]?.text).toBe('another thread');
      expect(await recalled(scene, 'cyd', 'thread')).toEqual([]);
      expect(await recalled(scene, 'cyd', '')).toEqual([]);
      expect(await scene.store.write('forgetFact', { owner: 'cyd', id: 'f1' })).toBe(false);
      expect(await recalled(scene, 'ada', 'secret')).toEqual(['f1']);
    });

    test('is kept once, by its id and by its text', async (scene) => {
      expect(await remember(scene, 'ada', 'f1', 'a thread')).toBe(true);
      expect(await remember(scene, 'ada', 'f1', 'a thread')).toBe(false);
      expect(await remember(scene, 'ada', 'f1', 'something else')).toBe(false);
      expect(await remember(scene, 'ada', 'f2', '  a thread ')).toBe(false);
      expect(await recalled(scene, 'ada', '')).toEqual(['f1']);
    });

    test('that is forgotten is found no more, and may come again', async (scene) => {
      await remember(scene, 'ada', 'f1', 'a thread');
      expect(await scene.store.write('forgetFact', { owner: 'ada', id: 'f1' })).toBe(true);
      expect(await scene.store.write('forgetFact', { owner: 'ada', id: 'f1' })).toBe(false);
      expect(await recalled(scene, 'ada', 'thread')).toEqual([]);
      expect(await remember(scene, 'ada', 'f2', 'a wheel')).toBe(true);
      expect(await recalled(scene, 'ada', 'thread')).toEqual([]);
      expect(await recalled(scene, 'ada', 'wheel')).toEqual(['f2']);
    });

    test('needs an id, an owner and a text that is not too long', async (scene) => {
      for (const [owner, id, text] of [
        ['', 'f1', 'x'],
        ['ada', '', 'x'],
        ['ada', 'f1', ' '],
        ['ada', 'f1', 'x'.repeat(4001)],
      ] as const) {
        expect(await codeOf(remember(scene, owner, id, text))).toBe('bad_input');
      }
    });
  });

  test('whoever has facts is listed, with the latest first', async (scene) => {
    await remember(scene, 'ada', 'f1', 'one');
    await remember(scene, 'bob', 'f1', 'two');
    await remember(scene, 'ada', 'f2', 'three');
    const owners = (limit: number) => scene.store.read('factOwners', { limit });
    expect(await owners(10)).toEqual([
      { owner: 'ada', facts: 2 },
      { owner: 'bob', facts: 1 },
    ]);
    expect(await owners(1)).toHaveLength(1);
  });

  test('without a word to look for, the newest facts are recalled', async (scene) => {
    for (const id of ['f1', 'f2', 'f3']) await remember(scene, 'ada', id, `thread ${id}`);
    expect(await recalled(scene, 'ada', ' ?! ', 2)).toEqual(['f3', 'f2']);
    expect(await recalled(scene, 'ada', 'thread', 2)).toHaveLength(2);
  });
}

function remember(scene: Scene, owner: string, id: string, text: string): Promise<boolean> {
  return scene.store.write('rememberFact', { id, owner, text, source: null });
}

function recall(scene: Scene, owner: string, text: string, limit = 10) {
  return scene.store.read('recallFacts', { owner, text, limit });
}

async function recalled(scene: Scene, owner: string, text: string, limit = 10): Promise<string[]> {
  return (await recall(scene, owner, text, limit)).map(({ id }) => id);
}
