import { describe, expect, test } from 'vitest';
import { Refusal, refusalIn, sendFailureOf } from '../../../src/platforms/dingtalk/failures.ts';
import { voiceLength } from '../../../src/platforms/dingtalk/voice-length.ts';
import type { Incoming, OutgoingFile, Place, ReplyContext } from '../../../src/platforms/platform.ts';
import { never, TestInbox, until } from '../contract/scene.ts';
import { DingtalkWorld, dingtalkAt, GROUP, paramOf, staffOf } from './world.ts';

const GROUP_SEND = '/v1.0/robot/groupMessages/send';
const DIRECT_SEND = '/v1.0/robot/oToMessages/batchSend';
const WEBHOOK = '/robot/sendBySession';
const OUTSIDER: Place = { type: 'dm', chat: '$:LWCP_v1:$0' };
const EMOTION = '/v1.0/robot/emotion/reply';

async function openScene({ speed = 100 } = {}) {
  const world = await DingtalkWorld.open({ card: false });
  const { platform, warnings } = dingtalkAt(world.fake, { card: false, speed });
  const inbox = new TestInbox();
  await platform.start(inbox);
  const close = async () => {
    await platform.stop();
    await world[Symbol.asyncDispose]();
  };
  const heard = async (data: Record<string, unknown>): Promise<Incoming> => {
    const before = inbox.received.length;
    world.bring({ ...world.message(), msgtype: 'text', text: { content: 'hello' }, ...data });
    await until(() => inbox.received.length > before, 'the message');
    return inbox.received.at(-1)!;
  };
  return { world, fake: world.fake, platform, warnings, inbox, heard, [Symbol.asyncDispose]: close };
}

function contextOf({ messageId, reply }: Incoming): ReplyContext {
  return { messageId, data: reply?.data ?? {}, until: reply?.until ?? null };
}

const caught = (thrown: unknown): unknown => thrown;

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

describe('files', () => {
  const bytes = new TextEncoder().encode('#!AMR\nvoice');

  test('go as what they are: pictures, recordings that DingTalk plays, and documents', async () => {
    await using scene = await openScene();
    const files: OutgoingFile[] = [
      { kind: 'image', name: 'a.png', mime: 'image/png', bytes },
      { kind: 'voice', name: 'v.amr', mime: 'audio/amr', bytes: amr(50) },
      { kind: 'voice', name: 'v.mp3', mime: 'audio/mpeg', bytes: new TextEncoder().encode('ID3 no length') },
      { kind: 'video', name: '/tmp/secret/v.MP4', mime: 'video/mp4', bytes },
      { kind: 'document', name: 'noextension', mime: null, bytes },
    ];
    await scene.platform.send(scene.world.place('group'), { text: '', files }, never);
    const sent = scene.fake.callsTo(GROUP_SEND);
    expect(sent.map(({ body }) => body.msgKey)).toEqual([
      ...['sampleImageMsg', 'sampleAudio', 'sampleFile', 'sampleFile', 'sampleFile'],
    ]);
    expect(paramOf(sent[1]!)).toMatchObject({ duration: '1000' });
    expect(paramOf(sent[3]!)).toMatchObject({ fileName: 'v.MP4', fileType: 'mp4' });
    expect(paramOf(sent[4]!)).toMatchObject({ fileName: 'noextension', fileType: 'bin' });
    const types = scene.fake.callsTo('/media/upload').map(({ query }) => query.get('type'));
    expect(types).toEqual(['image', 'voice', 'file', 'file', 'file']);
  });

  test('that fail behind the words are said to be missing, and the words are there once', async () => {
    await using scene = await openScene();
    scene.fake.failNext('/media/upload', { status: 200, body: { errcode: 40005, errmsg: 'no such type' } });
    const file: OutgoingFile = { kind: 'document', name: 'a.exe', mime: null, bytes };
    await scene.platform.send(scene.world.place('dm'), { text: 'here', files: [file] }, never);
    expect(scene.fake.messages.map(({ text }) => text)).toEqual(['here', '(a.exe could not be sent)']);
    expect(scene.warnings.join()).toContain('a file was not sent');
  });

  test('whose message is not answered are not sent twice, and are said to be missing maybe', async () => {
    await using scene = await openScene();
    const message = await scene.heard({});
    scene.fake.failNext(DIRECT_SEND, 'lost');
    const file: OutgoingFile = { kind: 'document', name: 'a.txt', mime: null, bytes };
    await scene.platform.send(message.place, { text: 'here', files: [file], reply: contextOf(message) }, never);
    const shown = scene.fake.messages.map(({ text, files }) => files[0]?.name ?? text);
    expect(shown).toEqual(['here', 'a.txt', '(a.txt may be missing)']);
  });

  test('whose upload is not answered have not been sent yet', async () => {
    await using scene = await openScene();
    scene.fake.failNext('/media/upload', 'lost');
    const file: OutgoingFile = { kind: 'image', name: 'a.png', mime: null, bytes };
    const failure = await scene.platform
      .send(scene.world.place('dm'), { text: '', files: [file] }, never)
      .catch(caught);
    expect(failure).toMatchObject({ kind: 'transient' });
    expect(scene.fake.messages).toEqual([]);
  });

  test('that people send are read by the code they came with, also from DingTalk at another root', async () => {
    await using scene = await openScene();
    scene.fake.files.set('code', { bytes, url: 'https://bucket.oss-cn-hangzhou.aliyuncs.com/storage/code' });
    const read = await scene.platform.openFile('robot-1:code', 1000, never);
    expect(Buffer.from(read).toString()).toBe('#!AMR\nvoice');
    const [asked] = scene.fake.callsTo('/v1.0/robot/messageFiles/download');
    expect(asked?.body).toEqual({ robotCode: 'robot-1', downloadCode: 'code' });
  });

  test.each([
    ['a host that is none of DingTalk', 'https://example.org/a'],
    ['a private address', 'http://169.254.169.254/latest/meta-data'],
    ['a file of the machine', 'file:///etc/passwd'],
    ['nothing', ''],
  ])('are not read where the answer names %s', async (_, url) => {
    await using scene = await openScene();
    scene.fake.files.set('code', { bytes, url });
    const failure = await scene.platform.openFile('robot-1:code', 1000, never).catch(caught);
    expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
  });

  test('whose code is over cannot be read, now or later', async () => {
    await using scene = await openScene();
    const failure = await scene.platform.openFile('robot-1:old', 1000, never).catch(caught);
    expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
  });

  test('have the length of their recording', () => {
    expect(voiceLength(amr(100))).toBe(2000);
    expect(voiceLength(ogg(96_000n))).toBe(2000);
    for (const odd of ['', '#!AMR\n', 'OggS', 'RIFF....WAVE']) {
      expect(voiceLength(new TextEncoder().encode(odd))).toBeNull();
    }
    expect(voiceLength(ogg(-1n))).toBeNull();
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

describe('every error that DingTalk has', () => {
  const asIs = (text: string): string => text;
  const failureOf = (status: number, body: object) => {
    const refusal = refusalIn({ status, headers: new Headers(), body }, 0);
    return refusal === null ? null : sendFailureOf(refusal, asIs);
  };

  test.each([
    [200, { errcode: 0, errmsg: 'ok' }, null, null],
    [200, {}, null, null],
    [200, { errcode: 300001, errmsg: 'token is not exist' }, 'unknown', null],
    [200, { errcode: 460101, errmsg: 'message too long, exceed 20000 bytes' }, 'too_long', null],
    [200, { errcode: 400002, errmsg: 'params error' }, 'bad_format', null],
    [200, { errcode: 130101, errmsg: 'send too fast, exceed 20 times per minute' }, 'rate_limited', 10_000],
    [200, { errcode: 90018, errmsg: 'too many calls' }, 'rate_limited', 1000],
    [200, { errcode: -1, errmsg: 'system busy' }, 'transient', 1000],
    [200, { errcode: 42001, errmsg: 'access_token expired' }, 'forbidden', 60_000],
    [400, { code: 'Throttling.Api', message: 'slow down' }, 'rate_limited', 1000],
    [403, { code: 'Forbidden.AccessDenied.QpsLimitForAppkeyAndApi', message: 'qps' }, 'rate_limited', 1000],
    [403, { code: 'Forbidden.AccessDenied.AccessTokenPermissionDenied', message: 'scope' }, 'forbidden', null],
    [401, { code: 'InvalidAuthentication', message: 'token' }, 'forbidden', 60_000],
    [400, { code: 'invalidClientIdOrSecret', message: 'secret' }, 'forbidden', 60_000],
    [400, { code: 'invalidParameter.openConversationId.invalid', message: 'group' }, 'gone', null],
    [400, { code: 'invalidParameter.userIds.invalid', message: 'person' }, 'gone', null],
    [400, { code: 'invalidParameter.msgParam', message: 'json' }, 'bad_format', null],
    [400, { code: 'msgParam.tooLong', message: 'long' }, 'too_long', null],
    [429, '<h1>Too many</h1>', 'rate_limited', 1000],
    [500, { code: 'ServiceUnavailable', message: 'x' }, 'transient', 1000],
    [503, '<h1>Bad Gateway</h1>', 'transient', 1000],
    [302, '', 'unknown', null],
  ] as const)('%i %j', (status, body, kind, retryAfterMs) => {
    const failure = failureOf(status, body as object);
    if (kind === null) expect(failure).toBeNull();
    else expect(failure).toMatchObject({ name: 'SendFailure', kind, retryAfterMs });
  });

  test('is told without secrets', () => {
    const refusal = new Refusal(400, 'x', 'the secret hush-hush is wrong', null);
    const failure = sendFailureOf(refusal, (text) => text.replaceAll('hush-hush', '<secret>'));
    expect(failure.message).toBe('the secret <secret> is wrong');
  });
});

/** A recording of so many frames of 20 ms. */
function amr(frames: number): Uint8Array {
  const frame = [0x3c, ...Array.from({ length: 31 }, () => 1)];
  return Uint8Array.from([...Buffer.from('#!AMR\n'), ...Array.from({ length: frames }, () => frame).flat()]);
}

/** Ogg with one page that ends behind so many samples. */
function ogg(samples: bigint): Uint8Array {
  const page = Buffer.alloc(28);
  page.write('OggS', 'latin1');
  page.writeBigInt64LE(samples, 6);
  return page;
}
