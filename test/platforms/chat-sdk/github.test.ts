import { expect, test } from 'vitest';
import { descriptor } from '../../../src/platforms/chat-sdk/descriptor.ts';
import type { Abilities } from '../../../src/platforms/platform.ts';
import { openStarted, type Plays, until } from '../contract/scene.ts';
import { contractOf } from '../contract.ts';
import { driverIn, type PlatformSubject } from '../subject.ts';
import { GitHubWorld } from './github-world.ts';

const plays: Plays = {
  ...{
    acknowledgement: true,
    changes: false,
    echoes: true,
    repetition: true,
    groups: false,
    refusals: true,
    cuts: true,
  },
  lostAnswers: true,
  forgeries: ['unsigned', 'forged'],
};

/** What its adapter can do, and no more: nobody sees that it types, and there are no buttons and no files. */
const abilities: Abilities = {
  ...descriptor.abilities,
  ...{ maxText: 60_000, counts: 'points', edit: true, remove: true, reactions: true, editEveryMs: 5000 },
};

const subject: PlatformSubject = {
  descriptor: { ...descriptor, abilities },
  modes: [{ title: '`@chat-adapter/github`', plays, open: () => GitHubWorld.open() }],
  keys: { thread: 'chat-sdk:thread:ada/loom:issue%3A9' },
  samples: [],
};

contractOf(subject);

const open = () =>
  openStarted({ abilities, plays, makeDriver: async () => driverIn(await GitHubWorld.open(), subject) });

test('an issue is a thread of its repository; who does not name us does not mean us', async () => {
  await using scene = await open();
  await scene.driver.say({ text: 'what is this?', where: 'group' });
  await scene.driver.say({ text: '/status', where: 'thread', person: 1 });
  await until(() => scene.inbox.received.length === 2, 'both');
  expect(scene.inbox.received).toMatchObject([
    {
      ...{ id: 'ada/loom:101', messageId: '101', text: 'what is this?', addressed: false },
      place: { type: 'thread', chat: 'ada/loom', thread: 'issue:7' },
      from: { id: '1000', name: 'user0', bot: false },
    },
    // A name in front of a command would hide it.
    { text: '/status', addressed: true, place: { thread: 'issue:10' } },
  ]);
});

test('Markdown arrives as it was written', async () => {
  await using scene = await open();
  const text = '# Findings\n\n* one\n+ two\n\n```ts\nconst a = `b`;\n```\n\n| a | b |\n|---|---|\n| 1 | 2_3 |';
  await scene.send(scene.driver.place('dm'), { text });
  expect(scene.driver.shown().at(-1)?.text).toBe(text);
});
