import { describe, expect, test } from 'vitest';
import { type Place, type ReplyContext, SendFailure } from '../../../src/platforms/platform.ts';
import { never, until } from '../contract/scene.ts';
import { DM, openAnswering, openScene, qqAt } from './scenes.ts';
import { GROUP } from './world.ts';

const CHANNEL: Place = { type: 'channel', scope: '3001', chat: '4001' };

describe('an answer', () => {
  test('carries the message it answers and a number that follows from its key, also in another process', async () => {
    await using scene = await openAnswering();
    await scene.send({ text: '**hello**', key: 'dlv_1' });
    const [first] = scene.messages.shown;
    expect(first?.body).toMatchObject({
      msg_type: 2,
      markdown: { content: '**hello**' },
      msg_id: scene.reply.messageId,
    });
    const next = qqAt(scene.world, 'websocket', scene.state).platform;
    const { messageId } = await next.send(DM, { text: 'hello', key: 'dlv_1', reply: scene.reply }, never);
    expect(messageId).toBe(`${scene.reply.messageId}/${String(first?.body.msg_seq)}`);
    await next.send(DM, { text: 'hello', key: 'dlv_2', reply: scene.reply }, never);
    expect(scene.messages.shown).toHaveLength(2);
    expect(scene.messages.shown[1]?.body.msg_seq).not.toBe(first?.body.msg_seq);
  });

  test('that was refused for a reason is tried under another number: the one that was refused may count as used', async () => {
    await using scene = await openAnswering();
    scene.world.server.failNext({ status: 400, code: 50055002 });
    expect(await scene.failureOf({ text: 'x', key: 'dlv_1' })).toMatchObject({ kind: 'transient' });
    await scene.send({ text: 'x', key: 'dlv_1' });
    const numbers = scene.world.server.callsTo('POST', /messages$/).map(({ body }) => body.msg_seq);
    expect(new Set(numbers).size).toBe(2);
    expect(scene.messages.shown).toHaveLength(1);
  });

  test('that was refused is tried under another number by the next process too', async () => {
    await using scene = await openAnswering();
    scene.world.server.failNext({ status: 400, code: 50055002 });
    expect(await scene.failureOf({ text: 'x', key: 'dlv_1' })).toMatchObject({ kind: 'transient' });
    const next = qqAt(scene.world, 'websocket', scene.state).platform;
    await next.send(DM, { text: 'x', key: 'dlv_1', reply: scene.reply }, never);
    const numbers = scene.world.server.callsTo('POST', /messages$/).map(({ body }) => body.msg_seq);
    expect(new Set(numbers).size).toBe(2);
  });

  test('that came too late is told so, whether its time or its answers are over', async () => {
    await using scene = await openAnswering();
    for (const key of ['a', 'b', 'c', 'd']) await scene.send({ text: key, key });
    const fifth = await scene.failureOf({ text: 'e', key: 'e' });
    expect(fifth).toMatchObject({ kind: 'expired', retryAfterMs: null });
    expect(fifth?.message).toContain('QQ takes answers for a while only');
    // One of those that were taken is still known.
    await scene.send({ text: 'a', key: 'a' });
    expect(scene.messages.shown).toHaveLength(4);
  });

  test('is not tried as the sixth to one message', async () => {
    await using scene = await openAnswering();
    scene.messages.mostAnswers = 100;
    for (const key of ['a', 'b', 'c', 'd', 'e']) await scene.send({ text: key, key });
    const calls = scene.world.server.calls.length;
    expect(await scene.failureOf({ text: 'f', key: 'f' })).toMatchObject({ kind: 'expired', retryAfterMs: null });
    expect(scene.world.server.calls).toHaveLength(calls);
  });

  test('in a group shows what it answers, and comes also where that cannot be shown', async () => {
    await using scene = await openAnswering('group');
    await scene.send({ text: 'yes', key: 'a', replyTo: scene.reply.messageId });
    expect(scene.world.shown()).toMatchObject([{ text: 'yes', repliesTo: scene.reply.messageId, chat: GROUP }]);
    scene.world.server.failNext({ status: 400, code: 304061 });
    await scene.send({ text: 'no', key: 'b', replyTo: scene.reply.messageId });
    expect(scene.world.shown()[1]).toMatchObject({ text: 'no', repliesTo: null });
  });

  test('waits for an audit as if it was sent, and is told if it is not shown after all', async () => {
    await using scene = await openAnswering();
    scene.messages.nextAudit = 'aud-1';
    await scene.send({ text: 'delicate', key: 'dlv_1' });
    scene.world.push({ op: 0, id: 'a', t: 'MESSAGE_AUDIT_PASS', d: { audit_id: 'aud-other' } });
    scene.world.push({ op: 0, id: 'b', t: 'MESSAGE_AUDIT_REJECT', d: { audit_id: 'aud-1' } });
    await until(() => scene.inbox.events.length > 0, 'the event');
    expect(scene.inbox.events).toMatchObject([{ kind: 'message_failed', key: 'dlv_1', place: DM, expired: false }]);
  });
});

describe('what is said unasked', () => {
  test('is sent without anything that it answers', async () => {
    await using scene = await openScene();
    await scene.platform.send(DM, { text: 'the report', key: 'dlv_1' }, never);
    const [message] = scene.world.server.messages.shown;
    expect(message?.text).toBe('the report');
    expect(message?.body).not.toHaveProperty('msg_id');
  });

  test('waits until they write where QQ does not take it', async () => {
    await using scene = await openScene();
    scene.world.server.messages.takesPushes = false;
    const failure = await scene.platform.send(DM, { text: 'x', key: 'k' }, never).catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ name: 'SendFailure', kind: 'expired', retryAfterMs: null });
  });
});

describe('a message that is refused as it is', () => {
  test('comes as a text where the bot may send no Markdown, and names its buttons', async () => {
    await using scene = await openAnswering();
    scene.messages.takesMarkdown = false;
    await scene.send({ text: '# Title\n\nsome **bold** [words](https://e.org)', key: 'a' });
    await scene.send({ text: 'Allow this?', key: 'b', buttons: [[{ label: 'Yes', data: 'y' }]] });
    expect(scene.messages.shown.map(({ text }) => text)).toEqual([
      'Title\n\nsome bold words (https://e.org)',
      'Allow this?\n\n[Yes]',
    ]);
  });

  test('comes with addresses that are none where addresses are not allowed', async () => {
    await using scene = await openAnswering();
    scene.messages.takesAddresses = false;
    await scene.send({ text: 'see https://docs.example.org/a.html and main.ts, 3.5 times', key: 'a' });
    expect(scene.messages.shown.map(({ text }) => text)).toEqual([
      'see https://docs[.]example[.]org/a[.]html and main[.]ts, 3.5 times',
    ]);
  });

  test('comes without its buttons where those are not allowed', async () => {
    await using scene = await openAnswering();
    scene.world.server.failNext({ status: 400, code: 304037 });
    await scene.send({ text: 'Allow this?', key: 'b', buttons: [[{ label: 'Yes', data: 'y' }]] });
    expect(scene.world.shown()).toMatchObject([{ text: 'Allow this?\n\n[Yes]', buttons: [] }]);
  });

  test('has labels that QQ takes', async () => {
    await using scene = await openAnswering();
    const buttons = [[{ label: 'In this session', data: 'x' }]];
    await scene.send({ text: 'Allow this?', key: 'b', buttons });
    expect(scene.world.shown()[0]?.buttons).toEqual(['In this s…']);
  });
});

describe('in a channel', () => {
  const reply: ReplyContext = { messageId: '08aa', data: { msg_id: '08aa' }, until: null };

  test('a message is plain text, answers the message, and has no number', async () => {
    await using scene = await openScene();
    scene.world.server.messages.said('08aa', '/channels/4001');
    const message = { text: '**yes** @everyone <@!42>', key: 'k', reply, replyTo: '08aa' };
    await scene.platform.send(CHANNEL, message, never);
    expect(scene.world.server.messages.shown[0]?.body).toEqual({
      content: 'yes @\u200beveryone <\u200b@!42>',
      msg_id: '08aa',
      message_reference: { message_id: '08aa', ignore_get_message_error: true },
    });
    expect(scene.platform.abilitiesAt(CHANNEL)).toMatchObject({ idempotent: false, buttons: false, reactions: true });
  });

  test('an answer that comes too late is told so', async () => {
    await using scene = await openScene();
    scene.world.server.messages.said('08aa', '/channels/4001');
    scene.world.closeWindow();
    const sent = scene.platform.send(CHANNEL, { text: 'x', key: 'k', reply }, never);
    await expect(sent).rejects.toMatchObject({ kind: 'expired', retryAfterMs: null });
  });

  test('files are named, because they cannot be sent', async () => {
    await using scene = await openScene();
    const file = { kind: 'document', name: 'a.csv', mime: null, bytes: new Uint8Array(3) } as const;
    await scene.platform.send(CHANNEL, { text: 'here', key: 'k', files: [file] }, never);
    expect(scene.world.server.messages.shown.map(({ text }) => text)).toEqual([
      'here\n\n(a.csv could not be sent: bots send no files in guilds)',
    ]);
  });

  test('a sign is put at a message, replaced and taken away; elsewhere there are none', async () => {
    await using scene = await openScene();
    const { reactions } = scene.world.server;
    for (const sign of ['seen', 'done', 'done', 'failed'] as const) {
      await scene.platform.react(CHANNEL, '08aa', sign, never);
      expect(reactions.get('08aa')?.size).toBe(1);
    }
    await scene.platform.react(CHANNEL, '08aa', null, never);
    expect(reactions.get('08aa')?.size).toBe(0);
    await expect(scene.platform.react(DM, 'x', 'seen', never)).rejects.toThrow(SendFailure);
  });

  test('a direct message of a guild goes by another way', async () => {
    await using scene = await openScene();
    await scene.platform.send({ type: 'dm', chat: 'dms-3001' }, { text: 'psst', key: 'k' }, never);
    expect(scene.world.server.messages.shown[0]?.path).toBe('/dms/3001');
  });
});

describe('a button', () => {
  test('is acknowledged at once, whatever the inbox does', async () => {
    await using scene = await openAnswering();
    const buttons = [[{ label: 'Yes', data: 'y' }]];
    const { messageId } = await scene.send({ text: 'Allow this?', key: 'b', buttons });
    const open = scene.inbox.hold();
    scene.inbox.answer = 'Thanks.';
    const pressed = scene.world.press(messageId, 'y');
    await until(() => scene.world.server.presses.size === 1, 'the acknowledgement');
    expect(scene.inbox.presses).toEqual([]);
    open();
    expect(await pressed).toBe('Thanks.');
  });
});

describe('the access token', () => {
  test('is asked for once by all who need it, and again before it ends', async () => {
    await using scene = await openScene('websocket', ({ server }) => {
      server.tokenSeconds = 60;
    });
    expect(scene.world.server.tokensGiven).toBe(1);
    // Ten seconds of it count, and time runs a hundred times as fast.
    await until(() => {
      void scene.platform.identify(never).catch(() => undefined);
      return scene.world.server.tokensGiven > 1;
    }, 'a new token');
  });

  test('that is refused early is replaced, and the message arrives', async () => {
    await using scene = await openAnswering();
    scene.world.server.dropToken();
    await Promise.all(['a', 'b', 'c'].map((key) => scene.send({ text: key, key })));
    expect(scene.messages.shown).toHaveLength(3);
    expect(scene.world.server.tokensGiven).toBe(2);
  });
});
