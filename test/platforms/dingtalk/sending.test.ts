import { describe, expect, test } from 'vitest';
import type { OutgoingFile, Place } from '../../../src/platforms/platform.ts';
import { never } from '../contract/scene.ts';
import { caught, contextOf, DIRECT_SEND, GROUP_SEND, openScene } from './scene.ts';
import { dingtalkAt, GROUP, staffOf } from './world.ts';

const WEBHOOK = '/robot/sendBySession';
const OUTSIDER: Place = { type: 'dm', chat: '$:LWCP_v1:$0' };
const EMOTION = '/v1.0/robot/emotion/reply';

describe('an answer', () => {
  test('goes to the address that its message brought', async () => {
    await using scene = await openScene();
    const message = await scene.heard(scene.world.message('group'));
    await scene.platform.send(message.place, { text: '# Yes', reply: contextOf(message) }, never);
    expect(scene.fake.messages).toMatchObject([{ chat: GROUP, way: 'webhook', text: '# Yes' }]);
    expect(scene.fake.callsTo(WEBHOOK)[0]?.body).toEqual({
      msgtype: 'markdown',
      markdown: { title: 'Yes', text: '# Yes' },
    });
    expect(scene.fake.callsTo('/v1.0/oauth2/accessToken')).toEqual([]);
  });

  test.each([
    ['a direct chat', 'dm', staffOf(0), DIRECT_SEND],
    ['a group', 'group', GROUP, GROUP_SEND],
  ] as const)('goes by the API in %s when that address is past its time', async (_, where, chat, path) => {
    await using scene = await openScene();
    const message = await scene.heard({ ...scene.world.message(where), sessionWebhookExpiredTime: Date.now() - 1 });
    await scene.platform.send(message.place, { text: 'late', reply: contextOf(message) }, never);
    expect(scene.fake.messages).toMatchObject([{ chat, way: 'api', text: 'late' }]);
    expect(scene.fake.callsTo(WEBHOOK)).toEqual([]);
    expect(scene.fake.callsTo(path)).toHaveLength(1);
  });

  test('goes by the API when the server takes none at that address any more, and is there once', async () => {
    await using scene = await openScene();
    const message = await scene.heard({});
    for (const session of scene.fake.sessions.values()) session.until = 0;
    await scene.platform.send(message.place, { text: 'late', reply: contextOf(message) }, never);
    expect(scene.fake.callsTo(WEBHOOK)).toHaveLength(1);
    expect(scene.fake.messages).toMatchObject([{ way: 'api', text: 'late' }]);
  });

  test('is not sent to an address that is none of DingTalk', async () => {
    await using scene = await openScene();
    const message = await scene.heard({ sessionWebhook: 'https://example.org/robot/sendBySession?session=x' });
    await scene.platform.send(message.place, { text: 'safe', reply: contextOf(message) }, never);
    expect(scene.fake.messages).toMatchObject([{ way: 'api', text: 'safe' }]);
  });

  test('whose own answer is lost is not sent by the API as well', async () => {
    await using scene = await openScene();
    const message = await scene.heard({});
    scene.fake.failNext(WEBHOOK, 'lost');
    const failure = await scene.platform
      .send(message.place, { text: 'once', reply: contextOf(message) }, never)
      .catch(caught);
    expect(failure).toMatchObject({ kind: 'uncertain' });
    expect(scene.fake.messages).toMatchObject([{ way: 'webhook', text: 'once' }]);
  });
});

describe('somebody without a staff id', () => {
  const outside = { senderStaffId: '', senderId: OUTSIDER.chat };

  test('is answered while the address counts, and afterwards when they write again', async () => {
    await using scene = await openScene();
    const message = await scene.heard(outside);
    expect(message.place).toMatchObject(OUTSIDER);
    expect(scene.platform.abilitiesAt(message.place)).toMatchObject({ needsReply: 'window', streams: false });
    await scene.platform.send(message.place, { text: 'now', reply: contextOf(message) }, never);
    const late = { ...contextOf(message), until: Date.now() - 1 };
    const failure = await scene.platform.send(message.place, { text: 'late', reply: late }, never).catch(caught);
    expect(failure).toMatchObject({ kind: 'expired', retryAfterMs: null });
    expect(String(failure)).toContain('no staff id');
    expect(scene.fake.messages.map(({ text, way }) => [text, way])).toEqual([['now', 'webhook']]);
    const again = await scene.heard(outside);
    await scene.platform.send(again.place, { text: 'late', reply: contextOf(again) }, never);
    expect(scene.fake.messages.at(-1)).toMatchObject({ text: 'late', way: 'webhook' });
  });

  test('cannot be written to first', async () => {
    await using scene = await openScene();
    const failure = await scene.platform.send(OUTSIDER, { text: 'hello' }, never).catch(caught);
    expect(failure).toMatchObject({ kind: 'expired', retryAfterMs: null });
    expect(scene.fake.messages).toEqual([]);
  });

  test('gets the words of a message with a file, and is told that the file is missing', async () => {
    await using scene = await openScene();
    const message = await scene.heard(outside);
    const file: OutgoingFile = { kind: 'document', name: 'a.txt', mime: 'text/plain', bytes: new Uint8Array(3) };
    await scene.platform.send(message.place, { text: 'here', files: [file], reply: contextOf(message) }, never);
    expect(scene.fake.messages.map(({ text }) => text)).toEqual(['here', '(a.txt could not be sent)']);
  });
});

describe('limits', () => {
  test('of messages per minute are kept: nothing is asked of the chat until then', async () => {
    await using scene = await openScene({ speed: 1 });
    const message = await scene.heard({});
    const reply = contextOf(message);
    scene.fake.failNext(WEBHOOK, { status: 200, body: { errcode: 130101, errmsg: 'send too fast' } });
    const failure = await scene.platform.send(message.place, { text: 'a', reply }, never).catch(caught);
    expect(failure).toMatchObject({ kind: 'rate_limited', retryAfterMs: 10_000 });
    const again = await scene.platform.send(message.place, { text: 'a', reply }, never).catch(caught);
    expect(again).toMatchObject({ kind: 'rate_limited' });
    expect(scene.fake.callsTo(WEBHOOK)).toHaveLength(1);
    await scene.platform.send(scene.world.place('group'), { text: 'other' }, never);
    expect(scene.fake.messages).toMatchObject([{ chat: GROUP }]);
  });

  test('that name a time are kept for so long', async () => {
    await using scene = await openScene({ speed: 1 });
    scene.fake.failNext('send', { status: 429, headers: { 'retry-after': '7' }, body: { code: 'Throttling.User' } });
    const failure = await scene.platform.send(scene.world.place('dm'), { text: 'a' }, never).catch(caught);
    expect(failure).toMatchObject({ kind: 'rate_limited', retryAfterMs: 7000 });
  });

  test('of one person, which come with an answer that is no error, are limits', async () => {
    await using scene = await openScene({ speed: 1 });
    scene.fake.flowControlled.add(staffOf(0));
    const failure = await scene.platform.send(scene.world.place('dm'), { text: 'a' }, never).catch(caught);
    expect(failure).toMatchObject({ kind: 'rate_limited' });
    expect(scene.fake.messages).toEqual([]);
  });
});

describe('the access token', () => {
  test('is asked for once, also by many at the same time, and kept', async () => {
    await using scene = await openScene();
    const place = scene.world.place('group');
    await Promise.all(['a', 'b', 'c', 'd'].map((text) => scene.platform.send(place, { text }, never)));
    await scene.platform.send(place, { text: 'e' }, never);
    expect(scene.fake.callsTo('/v1.0/oauth2/accessToken')).toHaveLength(1);
  });

  test('that is not taken any more is renewed, and the message sent once', async () => {
    await using scene = await openScene();
    const place = scene.world.place('dm');
    await scene.platform.send(place, { text: 'a' }, never);
    scene.fake.forgetTokens();
    await scene.platform.send(place, { text: 'b' }, never);
    expect(scene.fake.callsTo('/v1.0/oauth2/accessToken')).toHaveLength(2);
    expect(scene.fake.messages.map(({ text }) => text)).toEqual(['a', 'b']);
  });

  test('is renewed once for a call, and what is to be sent waits for a new secret', async () => {
    await using scene = await openScene();
    const no = { status: 401, body: { code: 'InvalidAuthentication', message: 'no' } };
    scene.fake.failNext('send', no, no);
    const failure = await scene.platform.send(scene.world.place('dm'), { text: 'a' }, never).catch(caught);
    expect(failure).toMatchObject({ kind: 'forbidden', retryAfterMs: 60_000 });
    expect(scene.fake.callsTo(DIRECT_SEND)).toHaveLength(2);
  });

  test('is renewed before it is over', async () => {
    // An hour and a half in a second.
    await using scene = await openScene({ speed: 5400 });
    const place = scene.world.place('dm');
    await scene.platform.send(place, { text: 'a' }, never);
    await new Promise((resolve) => setTimeout(resolve, 1400));
    await scene.platform.send(place, { text: 'b' }, never);
    expect(scene.fake.callsTo('/v1.0/oauth2/accessToken').length).toBeGreaterThanOrEqual(2);
  });

  test('that nobody gives means that nothing was sent, whatever became of the question', async () => {
    await using scene = await openScene();
    scene.fake.failNext('/v1.0/oauth2/accessToken', 'lost');
    const failure = await scene.platform.send(scene.world.place('dm'), { text: 'a' }, never).catch(caught);
    expect(failure).toMatchObject({ kind: 'transient' });
    expect(scene.fake.callsTo(DIRECT_SEND)).toEqual([]);
  });
});

describe('chats that are gone', () => {
  test('are a group that was disbanded, and a person who has left', async () => {
    await using scene = await openScene();
    scene.fake.disbanded.add(GROUP);
    const failure = await scene.platform.send(scene.world.place('group'), { text: 'a' }, never).catch(caught);
    expect(failure).toMatchObject({ kind: 'gone', retryAfterMs: null });
    scene.fake.outsiders.add(staffOf(0));
    const left = await scene.platform.send(scene.world.place('dm'), { text: 'a' }, never).catch(caught);
    expect(left).toMatchObject({ kind: 'gone', retryAfterMs: null });
  });
});

describe('signs at messages', () => {
  test('are put there by the conversation, also by a process that did not hear the message', async () => {
    await using scene = await openScene();
    const ref = await scene.world.say({ text: 'work' });
    await scene.platform.react(scene.world.place('dm'), ref, 'seen', never);
    expect(scene.world.reactions(ref)).toEqual(['🤔Thinking']);
    const { platform: next } = dingtalkAt(scene.fake, { card: false });
    await next.react(scene.world.place('dm'), ref, 'done', never);
    expect(scene.world.reactions(ref)).toEqual(['🥳Done']);
  });

  test('that are refused are given up with one warning, and nothing fails', async () => {
    await using scene = await openScene();
    const no = { status: 403, body: { code: 'Forbidden.AccessDenied.AccessTokenPermissionDenied', message: 'no' } };
    scene.fake.failNext(EMOTION, no, no, no);
    const ref = await scene.world.say({ text: 'work' });
    for (let times = 0; times < 3; times += 1) {
      await scene.platform.react(scene.world.place('dm'), ref, 'seen', never);
    }
    expect(scene.fake.callsTo(EMOTION)).toHaveLength(1);
    expect(scene.warnings.filter((warning) => warning.includes('signs at messages'))).toHaveLength(1);
    await scene.platform.send(scene.world.place('dm'), { text: 'still here' }, never);
  });

  test('are not given up because of a limit', async () => {
    await using scene = await openScene();
    const limit = { status: 403, body: { code: 'Forbidden.AccessDenied.QpsLimitForApi', message: 'qps' } };
    scene.fake.failNext(EMOTION, limit);
    const ref = await scene.world.say({ text: 'work' });
    const failure = await scene.platform.react(scene.world.place('dm'), ref, 'seen', never).catch(caught);
    expect(failure).toMatchObject({ kind: 'rate_limited' });
    await scene.platform.react(scene.world.place('dm'), ref, 'seen', never);
    expect(scene.world.reactions(ref)).toEqual(['🤔Thinking']);
  });
});
