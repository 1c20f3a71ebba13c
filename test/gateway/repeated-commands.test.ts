import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { WriteName } from '../../src/store/catalogue.ts';
import type { Store } from '../../src/store/port.ts';
import { PeopleScene } from './people-scene.ts';
import { Scene } from './scene.ts';

describe('a Telegram update that comes again', () => {
  let scene: PeopleScene;
  beforeEach(async () => {
    scene = await PeopleScene.open([42]);
  });
  afterEach(() => scene.close());

  const taken = (): Promise<void> => scene.until('it is taken', () => scene.bot.pending.length === 0);

  async function answered(text: string): Promise<void> {
    const before = scene.seen(42).length;
    scene.say(42, text);
    await scene.until(`${text} is answered`, () => scene.seen(42).length > before);
  }

  /** The same message twice, as Telegram brings it when it did not learn that the first one was taken. */
  async function twice(text: string): Promise<void> {
    const before = scene.seen(42).length;
    const message = scene.bot.say({ text });
    await scene.until(`${text} is answered`, () => scene.seen(42).length > before);
    scene.bot.push({ message });
    await taken();
    // What was said before is done when this is answered.
    await answered('/status');
  }

  async function commandEvents(name: string): Promise<number> {
    return (await scene.gateway.events()).filter(({ type }) => type === `command:${name}`).length;
  }

  test('with /undo takes back one message', async () => {
    await answered('one');
    await answered('two');
    await twice('/undo');
    expect(await commandEvents('undo')).toBe(1);
    expect(scene.seen(42).filter((text) => text.startsWith('Undone'))).toEqual(['Undone: “two”']);
  });

  test('with /retry does one message again', async () => {
    await answered('one');
    await answered('two');
    await twice('/retry');
    expect(await commandEvents('retry')).toBe(1);
    expect(scene.tasks()).toEqual(['42: one', '42: two', '42: two']);
  });

  test('with /new begins one session', async () => {
    await answered('one');
    await twice('/new');
    expect(await scene.gateway.store.read('stats', {})).toMatchObject({ total: 2 });
  });

  test('with /background has the work done once', async () => {
    await twice('/background spin');
    await scene.sees(42, 'did: spin');
    expect(scene.tasks()).toEqual(['42: spin']);
  });
});

describe('a command that was not done as a whole', () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.open();
  });
  afterEach(() => scene.close());

  /** Once, when a write of this name is done and its answer on the way. */
  function onWrite(name: WriteName, happens: () => void): void {
    const { store } = scene;
    const write = store.write.bind(store);
    const value: Store['write'] = async (given, args) => {
      const answer = await write(given, args);
      if (given !== name) return answer;
      Object.defineProperty(store, 'write', { value: write });
      happens();
      return answer;
    };
    Object.defineProperty(store, 'write', { value, configurable: true });
  }

  async function kept(): Promise<string[]> {
    const { id } = await scene.sessionOf('1');
    const rows = await scene.gateway.transcripts.withoutUndone(id);
    return rows.filter(({ role }) => role === 'user').map(({ text }) => text);
  }

  test.each(['/retry', '/queue more', '/steer more'])('%s changes nothing while nothing new is taken', async (text) => {
    await scene.ask('1', 'one');
    await scene.ask('1', 'two');
    await scene.gateway.drain('test');
    for (const _ of ['first', 'again']) {
      await expect(scene.say('1', text, 'ref')).rejects.toMatchObject({ code: 'draining' });
    }
    expect(await kept()).toEqual(['one', 'two']);
    expect((await scene.events()).map(({ type }) => type)).not.toContainEqual(expect.stringMatching(/^command:/));
    await scene.gateway.undrain();
    expect(await scene.say('1', text, 'ref')).toMatchObject({ type: 'turn' });
  });

  test('/retry that a drain finds under way is done as a whole', async () => {
    await scene.ask('1', 'one');
    await scene.ask('1', 'two');
    onWrite('appendMessages', () => {
      scene.gateway.conversations.draining = true;
    });
    expect(await scene.say('1', '/retry', 'ref')).toMatchObject({ type: 'turn', received: { turn: { text: 'two' } } });
    expect(scene.gateway.conversations.draining).toBe(true);
    await scene.until('it is done again', async () => (await kept()).length === 2);
  });

  test('/new whose outcome the store could not tell is not done again, and says so', async () => {
    await scene.ask('1', 'one');
    onWrite('resetSession', () => {
      throw new MoiraiError('store_outcome_unknown', 'the answer was lost');
    });
    await expect(scene.say('1', '/new', 'ref')).rejects.toMatchObject({ code: 'store_outcome_unknown' });
    expect(await scene.say('1', '/new', 'ref')).toMatchObject({
      type: 'answer',
      text: expect.stringContaining('it is not known whether it was done'),
    });
    expect(await scene.store.read('stats', {})).toMatchObject({ total: 2 });
  });
});
