import { afterEach, beforeEach, expect, test } from 'vitest';
import { Scene } from './scene.ts';

const SETTLE_MS = 150;
let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

function piece(text: string, user = 'user-1') {
  const conversation = { ...scene.conversation('1'), userId: user };
  const inbound = { conversation, text, originRef: `pigeon:${text}`, by: 'user' } as const;
  return scene.gateway.turns.receive(inbound, { settleMs: SETTLE_MS });
}

async function rowsOf(chat: string): Promise<string[]> {
  const messages = await scene.messages((await scene.sessionOf(chat)).id);
  return messages.filter(({ role }) => role === 'user').map(({ text }) => text);
}

test('messages that follow each other closely are one turn, and each is over', async () => {
  const received = [await piece('one'), await piece('two'), await piece('three')];
  expect(scene.runner.tasks).toHaveLength(0);
  const results = await Promise.all(received.map(({ turn }) => scene.gateway.turns.channels.follow(turn.id).ended));
  expect(results.map((result) => result?.outcome)).toEqual(['done', 'done', 'done']);
  expect(results[0]?.response).toBe('did: one\ntwo\nthree');
  expect(scene.runner.tasks.map(({ text }) => text)).toEqual(['one\ntwo\nthree']);
  expect(await rowsOf('1')).toEqual(['one\ntwo\nthree']);
  expect(scene.pigeons.textsTo('1')).toEqual(['did: one\ntwo\nthree']);
});

test('what another person says meanwhile is a turn of its own', async () => {
  const received = [await piece('one'), await piece('two', 'user-2'), await piece('three')];
  await Promise.all(received.map(({ turn }) => scene.gateway.turns.channels.follow(turn.id).ended));
  expect(scene.runner.tasks.map(({ text }) => text)).toEqual(['one', 'two', 'three']);
});

test('a message that comes again changes nothing', async () => {
  const first = await piece('one');
  await piece('two');
  await piece('two');
  await scene.gateway.turns.channels.follow(first.turn.id).ended;
  expect(scene.runner.tasks.map(({ text }) => text)).toEqual(['one\ntwo']);
});

test('/stop right behind a message stops it before it begins, and nothing that another person said', async () => {
  const [first, second] = [await piece('one'), await piece('two')];
  const other = await piece('three', 'user-2');
  expect(await scene.ask('1', '/stop')).toBe('Stopped.');
  for (const { turn } of [first, second]) {
    const over = await scene.gateway.turns.channels.follow(turn.id).ended;
    expect(over).toMatchObject({ outcome: 'interrupted', error: 'turn_stopped' });
  }
  await scene.gateway.turns.channels.follow(other.turn.id).ended;
  expect(scene.runner.tasks.map(({ text }) => text)).toEqual(['three']);
  expect(await scene.ask('1', '/stop')).toBe('Nothing is being done here.');
});

test('pieces that a stopped gateway left behind are answered by the next one', async () => {
  await piece('one');
  await piece('two');
  await scene.stop('restart');
  await scene.start();
  await scene.until('both are answered', () => scene.pigeons.textsTo('1').length === 2);
  expect(scene.pigeons.textsTo('1')).toEqual(['did: one', 'did: two']);
});

test('a message into a running turn follows the busy mode', async () => {
  const first = await piece('wait');
  await scene.until('it runs', () => scene.runner.tasks.length === 1);
  const second = await piece('later');
  scene.runner.release();
  await Promise.all([first, second].map(({ turn }) => scene.gateway.turns.channels.follow(turn.id).ended));
  expect(scene.runner.tasks.map(({ text }) => text)).toEqual(['wait', 'later']);
});
