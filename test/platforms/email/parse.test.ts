import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../contract/scene.ts';
import { readSamples } from '../samples.ts';
import { writeMail } from './mails.ts';
import { emailAt } from './scene.ts';

type Scene = Awaited<ReturnType<typeof emailAt>>;

/** What a mail becomes on its whole way: from an IMAP server, through the library, to the inbox. */
async function take({ world, inbox }: Scene, payload: Record<string, unknown>) {
  inbox.received.splice(0);
  world.push(payload);
  world.deliver(writeMail({ from: 'last@people.test', references: ['last@people.test'], text: 'the last one' }).raw);
  await until(() => inbox.texts.includes('the last one'), 'the mail behind it');
  return inbox.received.filter(({ text }) => text !== 'the last one');
}

describe('the samples beside the parser', () => {
  const samples = readSamples('email');
  let scene: Scene;

  beforeAll(async () => {
    scene = await emailAt();
  });

  afterAll(async () => {
    await scene[Symbol.asyncDispose]();
  });

  test('are many', () => expect(samples.length).toBeGreaterThan(50));

  test.each(samples.map((sample) => [sample.title, sample] as const))('%s', async (_, { payload, becomes }) => {
    const received = await take(scene, payload);
    if (becomes === null) expect(received).toEqual([]);
    else expect(received).toMatchObject([becomes]);
  });
});
