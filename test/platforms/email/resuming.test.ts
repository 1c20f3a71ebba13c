import { describe, expect, test } from 'vitest';
import { never, TestInbox, until } from '../contract/scene.ts';
import { writeMail } from './mails.ts';
import { emailAt, emailOf } from './scene.ts';
import { EmailWorld } from './world.ts';

const from = (n: number) => ({ from: `person-${n}@people.test`, references: [`thread-${n}@people.test`] });

/** Makes a mail older than the start of the platform. */
function age(world: EmailWorld, ms = 3_600_000): void {
  const { inbox } = world.server.imap;
  inbox.mails = inbox.mails.map((mail) => ({ ...mail, at: new Date(mail.at.getTime() - ms) }));
}

describe('the very first start', () => {
  test('leaves old mail alone, whether somebody has read it or not, and takes what came meanwhile', async () => {
    await using world = await EmailWorld.open();
    for (const text of ['old', 'older']) world.deliver(writeMail({ ...from(1), text }).raw);
    age(world);
    world.server.imap.cut();
    const { platform } = emailOf(world);
    const inbox = new TestInbox();
    await platform.start(inbox);
    world.deliver(writeMail({ ...from(2), text: 'while it connects' }).raw);
    await until(() => inbox.texts.length > 0, 'the new one');
    expect(inbox.texts).toEqual(['while it connects']);
    await platform.stop();
  });

  test('is remembered where the server cannot be reached for long', async () => {
    await using world = await EmailWorld.open();
    const state = new Map<string, string>();
    const { password } = world.server;
    world.revoke();
    const first = emailOf(world, { state });
    await first.platform.start(new TestInbox());
    await until(() => first.platform.state.phase === 'failed', 'failed');
    await first.platform.stop();
    world.deliver(writeMail({ ...from(1), text: 'behind the first start' }).raw);
    world.server.password = password;
    await using scene = await emailAt({ world, state });
    await until(() => scene.inbox.texts.includes('behind the first start'), 'what came meanwhile');
  });
});

describe('the position', () => {
  test('does not pass a mail that one thread cannot give away while others go on', async () => {
    await using world = await EmailWorld.open();
    const state = new Map<string, string>();
    const { platform } = emailOf(world, { state });
    const inbox = new TestInbox();
    const receive = inbox.receive.bind(inbox);
    inbox.receive = async (message) => {
      if (message.place.chat.startsWith('thread-1@')) throw new RangeError('not now');
      await receive(message);
    };
    await platform.start(inbox);
    world.deliver(writeMail({ ...from(1), text: 'stuck' }).raw);
    for (const n of [2, 3, 4]) world.deliver(writeMail({ ...from(n), text: `free ${n}` }).raw);
    await until(() => inbox.texts.length === 3, 'the others');
    await platform.stop();
    await using next = await emailAt({ world, state });
    await until(() => next.inbox.texts.includes('stuck'), 'what was stuck');
    const ids = [...inbox.received, ...next.inbox.received].map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
  });

  test('is no mark at the mail: what somebody has read on a telephone is taken, what was marked unread is not again', async () => {
    await using world = await EmailWorld.open();
    const state = new Map<string, string>();
    const first = await emailAt({ world, state });
    world.deliver(writeMail({ ...from(1), text: 'first' }).raw);
    await until(() => first.inbox.texts.length === 1 && world.unacknowledged() === 0, 'the first');
    await first[Symbol.asyncDispose]();
    for (const mail of world.server.imap.inbox.mails) mail.flags.clear();
    world.server.imap.deliver(writeMail({ ...from(1), text: 'read elsewhere' }).raw, undefined, ['\\Seen']);
    await using next = await emailAt({ world, state });
    await until(() => next.inbox.texts.length > 0, 'the second');
    expect(next.inbox.texts).toEqual(['read elsewhere']);
  });
});

describe('when the mailbox has other numbers', () => {
  test('what was taken is known by its id, and what came meanwhile is taken', async () => {
    await using world = await EmailWorld.open();
    const state = new Map<string, string>();
    const first = await emailAt({ world, state });
    for (const n of [1, 2, 3]) world.deliver(writeMail({ ...from(n), text: `before ${n}` }).raw);
    await until(() => first.inbox.texts.length === 3, 'what came before');
    await first[Symbol.asyncDispose]();
    world.deliver(writeMail({ ...from(1), text: 'meanwhile' }).raw);
    world.invalidate();
    await using next = await emailAt({ world, state });
    world.deliver(writeMail({ ...from(2), text: 'afterwards' }).raw);
    await until(() => next.inbox.texts.includes('afterwards'), 'the last');
    expect(next.inbox.texts).toEqual(['meanwhile', 'afterwards']);
  });

  test('and holds nothing that is known, only new mail is taken, and the log says so', async () => {
    await using world = await EmailWorld.open();
    const state = new Map<string, string>();
    const first = await emailAt({ world, state });
    world.deliver(writeMail({ ...from(1), text: 'before' }).raw);
    await until(() => first.inbox.texts.length === 1, 'what came before');
    await first[Symbol.asyncDispose]();
    world.server.imap.inbox.mails = [];
    world.deliver(writeMail({ ...from(2), text: 'from another mailbox' }).raw);
    world.invalidate();
    await using next = await emailAt({ world, state });
    world.deliver(writeMail({ ...from(3), text: 'new' }).raw);
    await until(() => next.inbox.texts.includes('new'), 'the new one');
    expect(next.inbox.texts).toEqual(['new']);
    expect(next.warnings.join('\n')).toContain('the mailbox was made anew');
  });

  test('a file is found by the id of its mail, also by another process', async () => {
    await using world = await EmailWorld.open();
    const state = new Map<string, string>();
    const first = await emailAt({ world, state });
    const file = { name: 'table.csv', mime: 'text/csv', bytes: Buffer.from('a,b\n') };
    world.deliver(writeMail({ ...from(1), text: 'look', file }).raw);
    await until(() => first.inbox.received.length === 1, 'the mail');
    const [{ ref } = { ref: '' }] = first.inbox.received[0]?.files ?? [];
    await first[Symbol.asyncDispose]();
    world.invalidate();
    const { platform } = emailOf(world, { state });
    expect(Buffer.from(await platform.openFile(ref, 100, never)).toString()).toBe('a,b\n');
    world.server.imap.inbox.mails = [];
    await expect(platform.openFile(ref, 100, never)).rejects.toMatchObject({ name: 'SendFailure', retryAfterMs: null });
  });
});

test('where the server ends the waiting for mail, it is waited for again', async () => {
  await using scene = await emailAt({ speed: 1 });
  const { imap } = scene.world.server;
  await until(() => imap.listeners === 1, 'that it waits');
  imap.endIdle();
  await until(() => imap.listeners === 1, 'that it waits again');
  scene.world.deliver(writeMail({ ...from(1), text: 'behind it' }).raw);
  await until(() => scene.inbox.texts.includes('behind it'), 'the mail');
});

test('a thread with the longest of ids is found by our own id', async () => {
  await using scene = await emailAt();
  const id = `${'x'.repeat(150)}@people.test`;
  scene.world.deliver(writeMail({ id, text: 'first' }).raw);
  await until(() => scene.inbox.received.length === 1, 'the first');
  const { messageId } = await scene.answer('answer', 'dlv_1');
  scene.world.deliver(writeMail({ inReplyTo: messageId, text: 'second' }).raw);
  await until(() => scene.inbox.received.length === 2, 'the second');
  expect(scene.inbox.received.map(({ place }) => place.chat)).toEqual([id, id]);
});
