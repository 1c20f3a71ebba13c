import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { SendFailure } from '../../../src/platforms/platform.ts';
import { never, openStarted, type PlatformUnderTest, TestInbox, until } from './scene.ts';

/** What comes from people. */
export function receivingContract(under: PlatformUnderTest): void {
  const { abilities, plays } = under;

  test('a message arrives with its words, its place and who said it, and is meant for us', async () => {
    await using scene = await openStarted(under);
    const messageId = await scene.driver.say({ text: 'hello' });
    await until(() => scene.inbox.received.length === 1, 'the message');
    const [message] = scene.inbox.received;
    expect(message).toMatchObject({ text: 'hello', messageId, addressed: true, edited: false, files: [], group: null });
    expect(message?.place).toMatchObject(scene.driver.place('dm'));
    expect(message?.from.bot).toBe(false);
    expect(message?.id).not.toBe('');
  });

  test('messages of one chat arrive one after the other, also when the inbox is slow', async () => {
    await using scene = await openStarted(under);
    const open = scene.inbox.hold();
    const texts = ['one', 'two', 'three', 'four', 'five'];
    for (const text of texts) await scene.driver.say({ text });
    await until(() => scene.inbox.tried.length > 0, 'the first try');
    expect(scene.inbox.tried).toHaveLength(1);
    open();
    await until(() => scene.inbox.received.length === 5, 'all of them');
    expect(scene.inbox.texts).toEqual(texts);
  });

  if (plays.acknowledgement) {
    test('a message is acknowledged only when the inbox has it', async () => {
      await using scene = await openStarted(under);
      const open = scene.inbox.hold();
      await scene.driver.say({ text: 'precious' });
      await until(() => scene.inbox.tried.length === 1, 'the try');
      await sleep(50);
      expect(scene.driver.unacknowledged?.()).toBe(1);
      open();
      await until(() => scene.driver.unacknowledged?.() === 0, 'the acknowledgement');
      expect(scene.inbox.texts).toEqual(['precious']);
    });

    test('a message the inbox could not take comes again with the same id, and what followed waits for it', async () => {
      await using scene = await openStarted(under);
      scene.inbox.refuseNext(2);
      await scene.driver.say({ text: 'first' });
      await scene.driver.say({ text: 'second' });
      await until(() => scene.inbox.received.length === 2, 'both');
      expect(scene.inbox.texts).toEqual(['first', 'second']);
      expect(new Set(scene.inbox.tried.slice(0, 3).map(({ id }) => id)).size).toBe(1);
      await until(() => scene.driver.unacknowledged?.() === 0, 'the acknowledgement');
    });

    test('stopping lets the inbox finish, and what it did not get goes to the next that starts', async () => {
      await using scene = await openStarted(under);
      const open = scene.inbox.hold();
      await scene.driver.say({ text: 'begun' });
      await until(() => scene.inbox.tried.length === 1, 'the try');
      const stopped = scene.platform.stop();
      await scene.driver.say({ text: 'too late' });
      expect(await Promise.race([stopped.then(() => 'stopped'), sleep(50, 'waiting')])).toBe('waiting');
      open();
      await stopped;
      expect(scene.inbox.texts).toEqual(['begun']);
      const next = await scene.driver.restart!();
      const inbox = new TestInbox();
      await next.start(inbox);
      await until(() => inbox.texts.includes('too late'), 'what came too late');
      expect(inbox.texts.filter((text) => text !== 'begun')).toEqual(['too late']);
      await next.stop();
    });
  }

  if (plays.repetition) {
    test('a message that comes again has the same id', async () => {
      await using scene = await openStarted(under);
      await scene.driver.say({ text: 'again' });
      await until(() => scene.inbox.received.length === 1, 'the message');
      await scene.driver.bringAgain!();
      await until(() => scene.inbox.received.length === 2, 'the repetition');
      expect(scene.inbox.received[1]?.id).toBe(scene.inbox.received[0]?.id);
    });
  }

  if (plays.echoes) {
    test('what we said ourselves is not heard', async () => {
      await using scene = await openStarted(under);
      await scene.driver.echo!('our own words');
      await scene.driver.say({ text: 'words of others' });
      await until(() => scene.inbox.received.length > 0, 'the other words');
      expect(scene.inbox.texts).toEqual(['words of others']);
    });
  }

  if (plays.changes) {
    test('a changed message comes as one, under an id of its own', async () => {
      await using scene = await openStarted(under);
      const messageId = await scene.driver.say({ text: 'helo' });
      await scene.driver.change!(messageId, 'hello');
      await until(() => scene.inbox.received.length === 2, 'the change');
      const [before, after] = scene.inbox.received;
      expect(after).toMatchObject({ messageId, text: 'hello', edited: true });
      expect(after?.id).not.toBe(before?.id);
    });
  }

  if (plays.groups) {
    test('in a group a message is not meant for us unless it answers us', async () => {
      await using scene = await openStarted(under);
      const place = scene.driver.place('group');
      const { messageId } = await scene.send(place, { text: 'our words' }, never);
      await scene.driver.say({ text: 'among ourselves', where: 'group' });
      await scene.driver.say({ text: 'right', where: 'group', repliesTo: messageId });
      await until(() => scene.inbox.received.length === 2, 'both');
      const [chatter, answer] = scene.inbox.received;
      expect(chatter).toMatchObject({ addressed: false, repliesTo: null, place });
      expect(answer).toMatchObject({ addressed: true, repliesTo: { messageId, own: true } });
    });
  }

  if (abilities.threads) {
    test('a message in a thread tells which, and the answer goes there', async () => {
      await using scene = await openStarted(under);
      await scene.driver.say({ text: 'in here', where: 'thread' });
      await until(() => scene.inbox.received.length === 1, 'the message');
      const { place } = scene.inbox.received[0]!;
      expect(place).toMatchObject(scene.driver.place('thread'));
      // Where every conversation is a thread, the chat is it.
      const thread = place.thread ?? (place.type === 'thread' ? place.chat : undefined);
      expect(thread).toBeDefined();
      await scene.send(place, { text: 'yes' }, never);
      expect(scene.driver.shown().at(-1)).toMatchObject({ text: 'yes', thread });
    });
  }

  if (abilities.files.in) {
    test('a file arrives with its words, has no path, and gives its bytes up to the size allowed', async () => {
      await using scene = await openStarted(under);
      const bytes = new TextEncoder().encode('a,b\n1,2\n');
      await scene.driver.say({ text: 'look', file: { name: '../../etc/table.csv', mime: 'text/csv', bytes } });
      await until(() => scene.inbox.received.length === 1, 'the file');
      const { text, files } = scene.inbox.received[0]!;
      expect(text).toBe('look');
      expect(files).toHaveLength(1);
      expect(files[0]?.name).toBe('table.csv');
      const { ref } = files[0]!;
      const { platform } = scene;
      expect(Buffer.from((await platform.openFile?.(ref, 1000, never))!).toString()).toBe('a,b\n1,2\n');
      await expect(platform.openFile?.(ref, 4, never)).rejects.toThrow(SendFailure);
    });
  }

  for (const how of plays.forgeries ?? []) {
    test(`what is not the platform's is refused: ${how}`, async () => {
      await using scene = await openStarted(under);
      expect(await scene.driver.forge!(how)).toBe(401);
      await scene.driver.say({ text: 'real' });
      await until(() => scene.inbox.texts.includes('real'), "what is the platform's");
      expect(scene.inbox.texts).toEqual(['real']);
    });
  }

  for (const what of plays.happenings ?? []) {
    test(`it tells what happens beside messages: ${what}`, async () => {
      await using scene = await openStarted(under);
      const messageId = await scene.driver.say({ text: 'about this', where: 'group' });
      await until(() => scene.inbox.received.length === 1, 'the message');
      await scene.driver.happen!(what, messageId);
      await until(() => scene.inbox.events.length > 0, 'the event');
      const { chat } = scene.driver.place('group');
      expect(scene.inbox.events[0]).toMatchObject({ ...EVENTS[what], place: { chat } });
      const event = scene.inbox.events[0]!;
      if (what === 'deleted') expect(event).toMatchObject({ messageId, id: scene.inbox.received[0]?.id });
      if (what === 'reaction') expect(event).toMatchObject({ messageId, from: { bot: false } });
      expect(scene.inbox.received).toHaveLength(1);
    });
  }
}

const EVENTS = {
  added: { kind: 'added' },
  removed: { kind: 'removed' },
  deleted: { kind: 'message_deleted' },
  reaction: { kind: 'reaction_added' },
  joined: { kind: 'member_joined' },
} as const;
