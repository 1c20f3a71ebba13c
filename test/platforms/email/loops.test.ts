import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Incoming } from '../../../src/platforms/platform.ts';
import { MailServer } from '../../fakes/mail-server.ts';
import { never, until } from '../contract/scene.ts';
import { writeMail } from './mails.ts';
import { emailAt } from './scene.ts';
import { EmailWorld } from './world.ts';

type Scene = Awaited<ReturnType<typeof emailAt>>;

/** Answers every mail, as an agent does whose sender is allowed. */
function answerAll({ platform, inbox }: Scene): void {
  const receive = inbox.receive.bind(inbox);
  inbox.receive = async (message: Incoming) => {
    await receive(message);
    const { place, messageId, reply, id } = message;
    await platform.send(place, { text: 'answer', key: `dlv_${id}`, reply: { messageId, ...reply! } }, never);
  };
}

test('two agents that answer each other stop after the first answer', async () => {
  const servers: MailServer[] = [];
  for (const address of ['one@agents.test', 'two@agents.test']) {
    servers.push(await MailServer.start({ address, others: () => servers.filter((each) => each.address !== address) }));
  }
  const [first, second] = servers.map((server) => EmailWorld.at(server)) as [EmailWorld, EmailWorld];
  await using one = await emailAt({ world: first });
  await using two = await emailAt({ world: second });
  for (const scene of [one, two]) answerAll(scene);
  first.deliver(writeMail({ from: 'two@agents.test', to: 'one@agents.test', subject: 'hello', text: 'hello' }).raw);
  await until(() => second.server.imap.inbox.mails.length === 1, 'the answer of the first');
  second.deliver(writeMail({ from: 'ada@people.test', text: 'behind it' }).raw);
  await until(() => two.inbox.texts.includes('behind it'), 'that the second has looked at it');
  expect(two.inbox.texts).toEqual(['behind it']);
  expect(first.server.sent.map(({ to }) => to)).toEqual([['two@agents.test']]);
  for (const server of servers) await server.close();
});

test.each([
  [
    'in the same thread',
    30,
    (mail: { id: string; references: readonly string[] }) => {
      return { inReplyTo: mail.id, references: [...mail.references, mail.id] };
    },
  ],
  ['in a thread of its own each time', 60, () => ({})],
])(
  'a program that answers %s and does not say so is answered %i times within an hour, and told of once',
  async (_, most, refer) => {
    await using scene = await emailAt();
    answerAll(scene);
    const { server } = scene.world;
    let answered = 0;
    const robot = setInterval(() => {
      for (const mail of server.sent.slice(answered)) {
        answered += 1;
        scene.world.deliver(
          writeMail({ from: 'robot@people.test', subject: 'away', text: `away ${answered}`, ...refer(mail) }).raw,
        );
      }
    }, 2);
    scene.world.deliver(writeMail({ from: 'robot@people.test', references: ['begin@people.test'], text: 'away' }).raw);
    const warned = () =>
      scene.warnings.filter((line) => line.includes('more mail from one address than a person writes'));
    await until(() => warned().length > 0, 'the warning', 30_000);
    await sleep(100);
    clearInterval(robot);
    expect(server.sent).toHaveLength(most + 1);
    expect(warned()).toHaveLength(1);
    scene.world.deliver(
      writeMail({ from: 'ada@people.test', references: ['begin@people.test'], text: 'a person' }).raw,
    );
    await until(() => scene.inbox.texts.includes('a person'), 'a person in the same thread');
  },
  60_000,
);

test('what waited for hours while nobody was there was not written in one hour, and all of it is taken', async () => {
  await using world = await EmailWorld.open();
  const state = new Map<string, string>();
  await (await emailAt({ world, state }))[Symbol.asyncDispose]();
  const texts = Array.from({ length: 70 }, (_, n) => `ticket ${n}`);
  for (const text of texts) world.deliver(writeMail({ from: 'ada@people.test', text }).raw);
  const { inbox } = world.server.imap;
  inbox.mails = inbox.mails.map((mail, n) => ({ ...mail, at: new Date(Date.now() - (texts.length - n) * 300_000) }));
  await using scene = await emailAt({ world, state });
  world.deliver(writeMail({ from: 'bob@people.test', text: 'the last one' }).raw);
  await until(() => scene.inbox.texts.includes('the last one'), 'the last one');
  expect(scene.inbox.texts.filter((text) => text.includes('ticket'))).toEqual(texts);
  expect(scene.warnings.join('\n')).not.toContain('more mail from one address');
});
