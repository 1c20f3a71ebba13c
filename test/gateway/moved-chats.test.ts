import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Session } from '../../src/lifecycle/session.ts';
import { PeopleScene } from './people-scene.ts';

const OLD = -300;
const NEW = -100_300;

let scene: PeopleScene;
beforeEach(async () => {
  scene = await PeopleScene.open([42]);
});
afterEach(() => scene.close());

async function sessions(): Promise<Session[]> {
  const { sessions: all } = await scene.gateway.store.read('listSessions', {
    ...{ states: [], kinds: [], platforms: [], reasons: [], key: null, user: null, text: null, since: null },
    ...{ cursor: null, limit: 100 },
  });
  return all.toSorted((a, b) => a.startedAt - b.startedAt);
}

async function said(text: string, chat: number): Promise<void> {
  scene.bot.say({ text, chat, type: chat === OLD ? 'group' : 'supergroup' });
  await scene.sees(chat, `did: ${text}`);
}

const taken = (): Promise<void> => scene.until('it is taken', () => scene.bot.pending.length === 0);

test('what is said in a supergroup goes on in the session of the group it was', async () => {
  await said('one', OLD);
  scene.bot.migrate(OLD, NEW);
  await said('two', NEW);
  expect(await sessions()).toMatchObject([{ state: 'open', key: 'agent:main:telegram:group:-300:42' }]);
});

test('a session that began in a supergroup before it was known what it had been ends', async () => {
  await said('one', OLD);
  await said('two', NEW);
  scene.bot.migrate(OLD, NEW);
  await taken();
  await said('three', NEW);
  expect(await sessions()).toMatchObject([
    { state: 'open', key: 'agent:main:telegram:group:-300:42' },
    { state: 'ended', endReason: 'switched', key: 'agent:main:telegram:group:-100300:42' },
  ]);
});

test('what was accepted in a supergroup before it was known what it had been is answered', async () => {
  await said('one', OLD);
  scene.bot.say({ text: 'two wait', chat: NEW, type: 'supergroup' });
  await scene.until('it runs', () => scene.runner.tasks.length === 2);
  scene.bot.migrate(OLD, NEW);
  await taken();
  expect((await sessions()).map(({ state }) => state)).toEqual(['open', 'open']);
  scene.runner.release();
  await scene.sees(NEW, 'did: two wait');
  await said('three', NEW);
  scene.bot.migrate(OLD, NEW);
  await scene.until('one session is left', async () => {
    return (await sessions()).filter(({ state }) => state !== 'ended').length === 1;
  });
});
