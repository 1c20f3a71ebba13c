import { expect, test } from 'vitest';
import type { ModelScript } from '../../fakes/model-script.ts';
import { userLines } from '../../gateway/user-lines.ts';
import { patience } from '../../support/patience.ts';
import { PlatformScene } from '../gateway-suite.ts';
import { subject } from './subject.ts';
import type { SlackWorld } from './world.ts';

const [socket, http] = subject.modes;
const words = Array.from({ length: 30 }, (_, word) => `word${word}`).join(' ');
const slow: ModelScript = () => ({ text: words, betweenMs: 100 });

async function open(settings: Record<string, unknown> = {}, script?: ModelScript, mode = socket) {
  const scene = await PlatformScene.open(subject, mode!, settings, script);
  return { scene, world: scene.world as SlackWorld };
}

async function keysOf(scene: PlatformScene): Promise<string[]> {
  const { data } = await scene.gateway.get<{ data: { key: string }[] }>('/v1/sessions');
  return data.map(({ key }) => key).sort();
}

test('a direct chat without the assistant is one conversation, and its reply grows by being changed', async () => {
  const { scene, world } = await open({ display: { streaming: true } }, slow);
  await using _ = scene;
  world.tell({ text: 'tell me', channel: 'D42' });
  const isPart = (text = '') => text !== '' && text !== words && words.startsWith(text);
  await scene.until('a part of it', () => isPart(world.shown()[0]?.text));
  await scene.until('the whole', () => world.shown()[0]?.text === words);
  expect(world.shown()).toMatchObject([{ thread: null, chat: 'D42' }]);
  expect(world.shown()[0]).not.toHaveProperty('stream');
  expect(await keysOf(scene)).toEqual(['agent:main:slack:dm:T1:D42']);
});

test('in a thread of a channel a reply is streamed by Slack itself', async () => {
  const { scene, world } = await open({ display: { streaming: true } }, slow);
  await using _ = scene;
  const { thread = '' } = world.place('thread');
  world.tell({ text: '@moirai tell me', channel: 'C1', thread });
  await scene.until('the stream', () => world.shown()[0]?.stream === 'open');
  await scene.until('its end', () => world.shown()[0]?.stream === 'finished');
  expect(world.shown()).toMatchObject([{ text: words, thread }]);
  expect(await keysOf(scene)).toEqual([`agent:main:slack:thread:T1:C1:${thread}`]);
});

test.each([socket, http])('a mention that Slack tells of twice is answered once, $title', async (mode) => {
  const { scene, world } = await open({}, undefined, mode);
  await using _ = scene;
  world.tell({ text: '@moirai hello', channel: 'C1' });
  world.tell({ text: 'among ourselves', channel: 'C1' });
  await scene.until('the answer', () => world.shown().length > 0);
  await scene.until('the acknowledgements', () => world.unacknowledged() === 0);
  world.tell({ text: '@moirai bye', channel: 'C1' });
  await scene.until('the last answer', () => world.shown().some(({ text }) => text.includes('did: bye')));
  expect(world.shown().map(({ text, thread }) => [text, thread])).toEqual([
    ['did: hello', null],
    ['did: bye', null],
  ]);
  expect(await keysOf(scene)).toEqual(['agent:main:slack:channel:T1:C1:U42']);
});

test.each([socket, http])('a slash command is answered where it was given, $title', async (mode) => {
  const { scene, world } = await open({}, undefined, mode);
  await using _ = scene;
  // Commands are brought once, so the gateway has to be there.
  await world.say({ text: 'hello' });
  await scene.until('the first answer', () => world.shown().length === 1);
  await world.command('/moirai', 'whoami', 'C1');
  await scene.until('the answer', () => world.shown().length === 2);
  expect(world.shown()[1]).toMatchObject({ chat: 'C1', text: expect.stringContaining('U42') });
  const answer = await world.command('/whoami', '', 'C404');
  await scene.until('the answer', () => world.fake.answers.has(answer));
  expect(JSON.stringify(world.fake.answers.get(answer))).toContain('U42');
});

test('a thread of the assistant shows that an answer is being made, and is a conversation of its own', async () => {
  const { scene, world } = await open();
  await using _ = scene;
  await world.say({ text: 'hello' });
  await scene.until('the answer', () => world.shown().length === 1);
  expect(world.typed()).toBeGreaterThan(0);
  const root = world.fake.workspace.add({ channel: 'D42', isBot: true, subtype: 'assistant_app_thread', text: 'New' });
  world.tell({ text: 'anew', channel: 'D42', thread: root.ts });
  await scene.until('the second answer', () => world.shown().length === 2);
  expect(world.shown().map(({ thread }) => thread)).toEqual([world.place('dm').thread, root.ts]);
  expect(await keysOf(scene)).toEqual(
    [`agent:main:slack:dm:T1:D42:${root.ts}`, subject.keys.dm]
      .map((key) => (key?.startsWith('agent') ? key : `agent:main:${key}`))
      .sort(),
  );
});

const [CHATS, MESSAGES, ACK_MS] = [20, 200, 3000];

test.each([socket, http])(
  'of 200 messages at once each is acknowledged within three seconds, and only when it is in the store, $title',
  async (mode) => {
    const script: ModelScript = ({ body }) => ({ text: `did: ${userLines(body.messages).join(', ')},` });
    const { scene, world } = await open({}, script, mode);
    await using _ = scene;
    world.fake.delivery.retryMs = ACK_MS;
    await world.say({ text: 'there?' });
    await scene.until('the first acknowledgement', () => world.unacknowledged() === 0);
    for (let n = 0; n < MESSAGES; n += 1) await world.say({ text: `message ${n}`, person: n % CHATS });
    await scene.until('the acknowledgements', () => world.unacknowledged() === 0);
    // What is answered now was in the store: Slack brings nothing again, and says nothing when asked.
    await scene.kill();
    world.fake.delivery.forget();
    world.fake.workspace.hides = true;
    await scene.start();
    const said = () => world.shown().map(({ text }) => text);
    for (let n = 0; n < MESSAGES; n += 1) {
      await scene.until(`message ${n}`, () => said().some((text) => text.includes(` message ${n},`)), 60_000);
    }
    const { acks } = world.fake.delivery;
    expect(acks.filter(({ payload }) => payload.type === 'event_callback')).toHaveLength(MESSAGES + 1);
    for (const { lastSentAt, ackedAt } of acks) expect(ackedAt - lastSentAt).toBeLessThan(patience(ACK_MS));
    // On a busy machine some are not stored in time, and come again.
    const [usual] = acks
      .map(({ sentAt, ackedAt }) => ackedAt - sentAt)
      .sort((a, b) => a - b)
      .slice(acks.length / 2);
    expect(usual).toBeLessThan(patience(ACK_MS));
  },
  180_000,
);
