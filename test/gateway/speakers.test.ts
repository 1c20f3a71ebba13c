import { afterEach, expect, test } from 'vitest';
import { PeopleScene } from './people-scene.ts';

let scene: PeopleScene;

afterEach(() => scene.close());

const [ANN, BOB] = [1, 2];

test('in a topic each turn is for who wrote it: the agent, its tools and its events name that person', async () => {
  scene = await PeopleScene.open([ANN, BOB]);
  scene.say(ANN, 'one', 'topic');
  await scene.sees('topic', 'did');
  scene.say(BOB, 'two', 'topic');
  await scene.until('both are answered', () => scene.seen('topic').length === 2);
  expect(scene.runner.tasks.map(({ userId }) => userId)).toEqual(['1', '2']);
  const agent = (await scene.gateway.events()).filter(({ type }) => type.startsWith('agent:'));
  expect(agent.map(({ type, user_id }) => `${type} ${user_id}`)).toEqual([
    ...['agent:start 1', 'agent:end 1', 'agent:start 2', 'agent:end 2'],
  ]);
});

test('in a topic who is shut out is silent, and who still may is answered', async () => {
  scene = await PeopleScene.open([ANN, BOB]);
  scene.say(ANN, 'one', 'topic');
  await scene.sees('topic', 'one');
  await scene.revoke(ANN);
  scene.say(BOB, 'two', 'topic');
  await scene.sees('topic', 'two');
  scene.say(ANN, 'three', 'topic');
  scene.say(BOB, 'four', 'topic');
  await scene.sees('topic', 'four');
  expect(scene.seen('topic').join()).not.toContain('three');
});

test('a message of who is shut out while it waits in a topic is not run; the ones around it are', async () => {
  scene = await PeopleScene.open([ANN, BOB]);
  scene.say(ANN, 'please wait', 'topic');
  await scene.until('it runs', () => scene.runner.tasks.length === 1);
  scene.say(BOB, 'secret deed', 'topic');
  await scene.until('it waits', async () => (await waiting()) === 2);
  scene.say(ANN, 'last', 'topic');
  await scene.until('both wait', async () => (await waiting()) === 3);
  await scene.revoke(BOB);
  scene.runner.release();
  await scene.sees('topic', 'last');
  expect(scene.runner.tasks.map(({ userId }) => userId)).toEqual(['1', '1']);
});

test('a turn takes up what its own person says meanwhile, and nothing of another', async () => {
  scene = await PeopleScene.open([ANN, BOB], { agent: { busy_mode: 'steer' } });
  scene.say(ANN, 'please wait', 'topic');
  await scene.until('it runs', () => scene.runner.tasks.length === 1);
  scene.say(BOB, 'delete it all', 'topic');
  await scene.until('it waits', async () => (await waiting()) === 2);
  scene.say(ANN, 'and this', 'topic');
  await scene.until('both wait', async () => (await waiting()) === 3);
  const taken = await scene.runner.tasks[0]?.context.takeSteering();
  expect(taken?.map(({ text }) => text.includes('and this'))).toEqual([true]);
  scene.runner.release();
  await scene.sees('topic', 'delete it all');
  expect(scene.runner.tasks.map(({ userId }) => userId)).toEqual(['1', '2']);
});

async function waiting(): Promise<number> {
  return (await scene.gateway.store.read('unfinishedTurns', { limit: 10 })).length;
}
