import { describe, expect, test } from 'vitest';
import { until } from '../contract/scene.ts';
import { type Written, writeMail } from './mails.ts';
import { emailAt } from './scene.ts';
import { EmailWorld } from './world.ts';

type Scene = Awaited<ReturnType<typeof emailAt>>;

/** Somebody answers with a quote below; returns what the agent gets of it. */
async function answerTo(scene: Scene, answered: string, written: Written = {}): Promise<string> {
  const text =
    'what do you say?\n\nOn Fri, Jan 2, 2026 at 11:00 AM Carol <carol@people.test> wrote:\n> the quoted words';
  const count = scene.inbox.texts.length;
  scene.world.deliver(writeMail({ inReplyTo: answered, references: [answered], text, ...written }).raw);
  await until(() => scene.inbox.texts.length > count, 'the answer');
  return scene.inbox.texts.at(-1) ?? '';
}

/** Brings a mail, and one behind it that shows that it was looked at. */
async function bring({ world, inbox }: Scene, written: Written): Promise<string> {
  const { id, raw } = writeMail(written);
  world.deliver(raw);
  const count = inbox.texts.filter((text) => text === 'behind it').length;
  world.deliver(writeMail({ references: ['other@people.test'], text: 'behind it' }).raw);
  await until(() => inbox.texts.filter((text) => text === 'behind it').length > count, 'the mail behind it');
  return id;
}

const ANSWER = 'what do you say?';

describe('what an answer quotes is left out', () => {
  test('where it is of us', async () => {
    await using scene = await emailAt();
    await bring(scene, { subject: 'Cards', text: 'How many?' });
    const { messageId } = await scene.answer('Forty', 'dlv_1');
    expect(await answerTo(scene, messageId)).toBe(ANSWER);
  });

  test('as far as it is read: behind very long quotes it says that the rest is left out', async () => {
    await using scene = await emailAt();
    await bring(scene, { subject: 'Cards', text: 'How many?' });
    const { messageId } = await scene.answer('Forty', 'dlv_1');
    const quotes = '> the quoted words\r\n'.repeat(10_000);
    const part = (text: string): string => `--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${text}\r\n`;
    const { raw } = writeMail({ inReplyTo: messageId, references: [messageId] });
    const [head = ''] = raw.toString().split(/Content-Type:/i);
    const parts = [`what do you say?\r\n\r\nOn Fri, Jan 2, 2026 Carol <carol@people.test> wrote:\r\n${quotes}`, quotes];
    const whole = `${head}Content-Type: multipart/mixed; boundary="b"\r\n\r\n${parts.map(part).join('')}--b--\r\n`;
    const count = scene.inbox.texts.length;
    scene.world.deliver(Buffer.from(whole));
    await until(() => scene.inbox.texts.length > count, 'the answer');
    expect(scene.inbox.texts.at(-1)).toBe(`${ANSWER}\n\n[The rest of the mail is left out.]`);
  });

  test('where it is of a mail that was taken, also by a process before this one', async () => {
    await using world = await EmailWorld.open();
    const state = new Map<string, string>();
    const first = await emailAt({ world, state });
    const id = await bring(first, { subject: 'Cards', text: 'How many?' });
    expect(await answerTo(first, id, { from: 'bob@people.test' })).toBe(ANSWER);
    await first[Symbol.asyncDispose]();
    await using next = await emailAt({ world, state });
    expect(await answerTo(next, id)).toBe(ANSWER);
  });
});

describe('what an answer quotes is kept, as the conversation has not seen it,', () => {
  test.each<[string, Written]>([
    ['a program wrote', { headers: { 'Auto-Submitted': 'auto-generated' } }],
    ['went to many', { headers: { Precedence: 'bulk' } }],
  ])('where it is of a mail that %s', async (_, written) => {
    await using scene = await emailAt();
    const id = await bring(scene, { subject: 'Alarm', text: 'the quoted words', ...written });
    expect(await answerTo(scene, id)).toContain('> the quoted words');
  });

  test('where it is of a mail that came before the very first start', async () => {
    await using world = await EmailWorld.open();
    const { id, raw } = writeMail({ subject: 'Old', text: 'the quoted words' });
    world.deliver(raw);
    const { inbox } = world.server.imap;
    inbox.mails = inbox.mails.map((mail) => ({ ...mail, at: new Date(mail.at.getTime() - 3_600_000) }));
    await using scene = await emailAt({ world });
    expect(await answerTo(scene, id)).toContain('> the quoted words');
  });

  test('where somebody else wrote it in a thread of ours, and not to us', async () => {
    await using scene = await emailAt();
    const root = await bring(scene, { subject: 'Cards', text: 'How many?' });
    const { messageId } = await scene.answer('Forty', 'dlv_1');
    const elsewhere = 'from-carol@people.test';
    const text = await answerTo(scene, elsewhere, { references: [root, messageId, elsewhere] });
    expect(text).toContain('> the quoted words');
  });
});
