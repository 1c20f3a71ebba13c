import { describe, expect, test } from 'vitest';
import { type OutgoingFile, type Place, SendFailure } from '../../../src/platforms/platform.ts';
import { Telegram } from '../../../src/platforms/telegram/platform.ts';
import { BotApiFake, type Fault } from '../../fakes/bot-api.ts';
import { never, TestInbox, testRuntime, until } from '../contract/scene.ts';
import { telegramAt } from './world.ts';

const dm: Place = { type: 'dm', chat: '42' };
const topic: Place = { type: 'thread', chat: '-1001', thread: '5' };

async function openScene() {
  const fake = await BotApiFake.start();
  const { platform, warnings } = telegramAt(fake);
  const failureOf = async (place: Place, text = 'x') =>
    (await platform.send(place, { text }, never).catch((thrown: unknown) => thrown)) as SendFailure;
  return { fake, platform, warnings, failureOf, [Symbol.asyncDispose]: () => fake.close() };
}

function fileOf(kind: OutgoingFile['kind'], name: string): OutgoingFile {
  return { kind, name, mime: null, bytes: new TextEncoder().encode(name) };
}

describe('a message that Telegram refuses', () => {
  const refusals: readonly (readonly [Fault, Partial<SendFailure>])[] = [
    [
      { code: 429, description: 'Too Many Requests', parameters: { retry_after: 7 } },
      { kind: 'rate_limited', retryAfterMs: 7000 },
    ],
    [
      { code: 403, description: 'Forbidden: bot was blocked by the user' },
      { kind: 'gone', retryAfterMs: null },
    ],
    [
      { code: 403, description: 'Forbidden: bot was kicked from the supergroup chat' },
      { kind: 'gone', retryAfterMs: null },
    ],
    [
      { code: 403, description: 'Forbidden: user is deactivated' },
      { kind: 'gone', retryAfterMs: null },
    ],
    [
      { code: 403, description: 'Forbidden: something new' },
      { kind: 'forbidden', retryAfterMs: null },
    ],
    [
      { code: 400, description: 'Bad Request: chat not found' },
      { kind: 'gone', retryAfterMs: null },
    ],
    [
      { code: 400, description: 'Bad Request: not enough rights to send text messages to the chat' },
      { kind: 'forbidden', retryAfterMs: null },
    ],
    [
      { code: 400, description: 'Bad Request: message is too long' },
      { kind: 'too_long', retryAfterMs: null },
    ],
    [
      { code: 400, description: 'Bad Request: something new' },
      { kind: 'unknown', retryAfterMs: null },
    ],
    [
      { code: 401, description: 'Unauthorized' },
      { kind: 'forbidden', retryAfterMs: 60_000 },
    ],
    [
      { code: 500, description: 'Internal Server Error' },
      { kind: 'transient', retryAfterMs: 1000 },
    ],
    [{ html: 502 }, { kind: 'transient', retryAfterMs: 1000 }],
    ['cut', { kind: 'uncertain', retryAfterMs: 1000 }],
  ];

  test.each(refusals)('%j says why, and whether to try again', async (fault, expected) => {
    await using scene = await openScene();
    scene.fake.failNext('sendMessage', fault);
    const failure = await scene.failureOf(dm);
    expect(failure).toBeInstanceOf(SendFailure);
    expect(failure).toMatchObject(expected);
    expect(scene.fake.callsOf('sendMessage')).toHaveLength(1);
  });

  test('with the token in its words does not pass it on', async () => {
    await using scene = await openScene();
    scene.fake.failNext('sendMessage', { code: 400, description: `Bad Request: bot${scene.fake.token} is odd` });
    const { message } = await scene.failureOf(dm);
    expect(message).toContain('bot<secret> is odd');
    expect(message).not.toContain('secret-of-the-bot');
  });

  test('is not carried to another server, which would learn the token', async () => {
    await using scene = await openScene();
    await using stranger = await BotApiFake.start();
    scene.fake.failNext('sendMessage', { redirect: `${stranger.url}/bot${stranger.token}/sendMessage` });
    expect(await scene.failureOf(dm)).toBeInstanceOf(SendFailure);
    expect(stranger.calls).toEqual([]);
  });

  test('for its markup goes as it was written', async () => {
    await using scene = await openScene();
    scene.fake.failNext('sendMessage', { code: 400, description: "Bad Request: can't parse entities: unsupported" });
    await scene.platform.send(dm, { text: '**bold** <tag>' }, never);
    const [, plain] = scene.fake.callsOf('sendMessage');
    expect(plain?.payload).toMatchObject({ text: '**bold** <tag>' });
    expect(plain?.payload).not.toHaveProperty('parse_mode');
  });

  test('because its topic is gone goes to the chat, once', async () => {
    await using scene = await openScene();
    const gone = { code: 400, description: 'Bad Request: message thread not found' };
    scene.fake.failNext('sendMessage', gone);
    await scene.platform.send(topic, { text: 'lost' }, never);
    expect([...scene.fake.messages.values()]).toMatchObject([{ chat: -1001, thread: null, text: 'lost' }]);
    scene.fake.failNext('sendMessage', gone, gone);
    expect(await scene.failureOf(topic)).toMatchObject({ kind: 'unknown', retryAfterMs: null });
  });

  test('because its group has become another chat follows it there, now and later', async () => {
    await using scene = await openScene();
    const description = 'Bad Request: group chat was upgraded to a supergroup chat';
    scene.fake.failNext('sendMessage', { code: 400, description, parameters: { migrate_to_chat_id: -1009 } });
    const group: Place = { type: 'group', chat: '-100' };
    await scene.platform.send(group, { text: 'one' }, never);
    await scene.platform.send(group, { text: 'two' }, never);
    expect([...scene.fake.messages.values()].map(({ chat }) => chat)).toEqual([-1009, -1009]);
    expect(scene.fake.callsOf('sendMessage')).toHaveLength(3);
  });

  test('because its group has become another chat follows it there, also beside another call that does', async () => {
    await using scene = await openScene();
    scene.fake.migrate(-100, -1009);
    const group: Place = { type: 'group', chat: '-100' };
    await Promise.all([
      scene.platform.showTyping(group, never),
      scene.platform.send(group, { text: 'one' }, never),
      scene.platform.send(group, { text: 'two' }, never),
    ]);
    const sent = [...scene.fake.messages.values()].map(({ chat, text }) => `${chat}: ${text}`);
    expect(sent.toSorted()).toEqual(['-1009: one', '-1009: two']);
  });

  test('because its group has become another chat tells the inbox', async () => {
    await using scene = await openScene();
    const inbox = new TestInbox();
    await scene.platform.start(inbox);
    scene.fake.migrate(-100, -1009);
    await scene.platform.send({ type: 'group', chat: '-100' }, { text: 'one' }, never);
    const told = () => inbox.moves.length >= 3;
    await until(told, 'the inbox is told by both chats and by the refusal');
    expect(new Set(inbox.moves)).toEqual(new Set(['-100 -> -1009']));
    expect(inbox.received).toEqual([]);
    await scene.platform.stop();
  });

  test('for its number is followed by none to the same chat until it is time; others go on', async () => {
    await using scene = await openScene();
    scene.fake.failNext('sendMessage', {
      code: 429,
      description: 'Too Many Requests',
      parameters: { retry_after: 600 },
    });
    await scene.failureOf(dm);
    const second = await scene.failureOf(dm);
    expect(second).toMatchObject({ kind: 'rate_limited' });
    expect(second.retryAfterMs).toBeGreaterThan(300_000);
    await scene.platform.showTyping(dm, never);
    expect(scene.fake.calls).toHaveLength(1);
    await scene.platform.send({ type: 'dm', chat: '43' }, { text: 'other' }, never);
    expect(scene.fake.messages.size).toBe(1);
  });
});

describe('a message', () => {
  test('has no preview of links, answers also what is gone, and goes into its topic', async () => {
    await using scene = await openScene();
    await scene.platform.send(topic, { text: 'see https://example.org', replyTo: '7' }, never);
    expect(scene.fake.callsOf('sendMessage')[0]?.payload).toMatchObject({
      chat_id: -1001,
      message_thread_id: 5,
      link_preview_options: { is_disabled: true },
      reply_parameters: { message_id: 7, allow_sending_without_reply: true },
    });
  });

  test('that would show nothing when formatted goes as it is', async () => {
    await using scene = await openScene();
    for (const text of ['```\n```', '> ', '#']) await scene.platform.send(dm, { text }, never);
    expect([...scene.fake.messages.values()].map(({ text }) => text)).toEqual(['```\n```', '> ', '#']);
  });

  test('to a server that never answers ends when the caller has enough', async () => {
    await using scene = await openScene();
    scene.fake.failNext('sendMessage', 'silence');
    const failure = await scene.platform.send(dm, { text: 'x' }, AbortSignal.timeout(50)).catch((thrown) => thrown);
    expect(failure).toMatchObject({ name: 'SendFailure', kind: 'uncertain', retryAfterMs: 1000 });
  });

  test('of the full length fits, however much of it is escaped', async () => {
    await using scene = await openScene();
    await scene.platform.send(dm, { text: '<&>"'.repeat(1024) }, never);
    expect([...scene.fake.messages.values()][0]?.text).toBe('<&>"'.repeat(1024));
  });

  test('with a button whose data Telegram would not take is refused before it is sent', async () => {
    await using scene = await openScene();
    const buttons = [[{ label: 'Go', data: 'é'.repeat(33) }]];
    const failure = await scene.platform.send(dm, { text: 'x', buttons }, never).catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ kind: 'bad_format', retryAfterMs: null });
    expect(scene.fake.calls).toEqual([]);
  });

  test('with a file is its caption, unless it is too long for one', async () => {
    await using scene = await openScene();
    await scene.platform.send(dm, { text: '**look**', files: [fileOf('image', 'a.png')] }, never);
    await scene.platform.send(dm, { text: 'y'.repeat(2000), files: [fileOf('voice', 'a.ogg')] }, never);
    const shown = [...scene.fake.messages.values()].map(({ method, text }) => [method, text.length]);
    expect(shown).toEqual([
      ['sendPhoto', 4],
      ['sendMessage', 2000],
      ['sendVoice', 0],
    ]);
  });

  test('with several pictures is an album; other files come one by one', async () => {
    await using scene = await openScene();
    const pictures = [fileOf('image', 'a.png'), fileOf('video', 'b.mp4'), fileOf('image', 'c.png')];
    await scene.platform.send(dm, { text: 'three', files: pictures }, never);
    await scene.platform.send(dm, { text: '', files: [fileOf('audio', 'd.mp3'), fileOf('document', 'e.txt')] }, never);
    expect(scene.fake.calls.map(({ method }) => method)).toEqual([
      'sendMessage',
      'sendMediaGroup',
      'sendAudio',
      'sendDocument',
    ]);
    const names = [...scene.fake.messages.values()].flatMap(({ files }) => files.map(({ name }) => name));
    expect(names).toEqual(['a.png', 'b.mp4', 'c.png', 'd.mp3', 'e.txt']);
  });

  test('with a file that is not what it is said to be sends it as a document', async () => {
    await using scene = await openScene();
    scene.fake.failNext('sendPhoto', { code: 400, description: 'Bad Request: PHOTO_INVALID_DIMENSIONS' });
    await scene.platform.send(dm, { text: 'wide', files: [fileOf('image', 'wide.png')] }, never);
    expect([...scene.fake.messages.values()]).toMatchObject([{ method: 'sendDocument', text: 'wide' }]);
  });

  test('of which a part has arrived is never sent again: what is missing is said', async () => {
    await using scene = await openScene();
    const refused = { code: 400, description: 'Bad Request: failed to get HTTP URL content' };
    scene.fake.failNext('sendDocument', { code: 429, description: 'x', parameters: { retry_after: 1 } }, refused);
    const files = [fileOf('audio', 'a.mp3'), fileOf('document', 'b.txt')];
    await scene.platform.send(dm, { text: 'two files', files }, never);
    expect([...scene.fake.messages.values()].map(({ text }) => text)).toEqual([
      'two files',
      '',
      '(b.txt could not be sent)',
    ]);
  });

  test('with a file is changed in its caption', async () => {
    await using scene = await openScene();
    const { messageId } = await scene.platform.send(dm, { text: 'a', files: [fileOf('document', 'a.txt')] }, never);
    await scene.platform.edit(dm, messageId, { text: 'b' }, never);
    expect([...scene.fake.messages.values()]).toMatchObject([{ text: 'b' }]);
  });

  test('that is changed loses its buttons unless it has new ones', async () => {
    await using scene = await openScene();
    const buttons = [[{ label: 'Yes', data: 'y' }]];
    const { messageId } = await scene.platform.send(dm, { text: 'Allow this?', buttons }, never);
    await scene.platform.edit(dm, messageId, { text: 'Allow this?' }, never);
    expect([...scene.fake.messages.values()][0]?.payload).not.toHaveProperty('reply_markup');
  });
});

describe('commands', () => {
  test('are offered as far as Telegram can show them', async () => {
    await using scene = await openScene();
    const commands = [
      { name: 'new', summary: 'Starts again' },
      { name: 'Not-This', summary: 'x' },
    ];
    await scene.platform.offerCommands(commands, never);
    expect(scene.fake.callsOf('setMyCommands')[0]?.payload).toEqual({
      commands: [{ command: 'new', description: 'Starts again' }],
    });
  });
});

describe('a file from outside', () => {
  async function receiveFile(bytes: Uint8Array, contentLength?: number, file_size?: number) {
    const fake = await BotApiFake.start();
    const { platform } = telegramAt(fake);
    const inbox = new TestInbox();
    await platform.start(inbox);
    const kept = fake.keepFile(bytes, contentLength);
    fake.say({ fields: { document: { ...kept, ...(file_size === undefined ? {} : { file_size }) } } });
    await until(() => inbox.received.length === 1, 'the file');
    const close = async () => {
      await platform.stop();
      await fake.close();
    };
    const file = inbox.received[0]!.files[0]!;
    const open = (maxBytes: number) => platform.openFile(file.ref, maxBytes, never);
    return { fake, file, open, [Symbol.asyncDispose]: close };
  }

  test('of 50 MB is refused, whatever size it claims to have', async () => {
    const bytes = new Uint8Array(50_000_000);
    await using honest = await receiveFile(bytes);
    await expect(honest.open(100_000_000)).rejects.toMatchObject({ kind: 'too_large', retryAfterMs: null });
    await using lying = await receiveFile(bytes, 10, 10);
    expect(lying.file.bytes).toBe(10);
    const before = process.memoryUsage().arrayBuffers;
    await expect(lying.open(1000)).rejects.toMatchObject({ kind: 'too_large', retryAfterMs: null });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000);
  });

  test('is not read from a private address the server leads to', async () => {
    await using scene = await receiveFile(new Uint8Array(10));
    await using inside = await BotApiFake.start();
    const redirect = `${inside.url}/bot${inside.token}/getMe`;
    for (const [path, file] of scene.fake.files) scene.fake.files.set(path, { ...file, redirect });
    await expect(scene.open(1000)).rejects.toMatchObject({ name: 'SendFailure', retryAfterMs: null });
    expect(inside.calls).toEqual([]);
  });

  test('that is gone is no reason to try again', async () => {
    await using scene = await receiveFile(new Uint8Array(10));
    scene.fake.files.clear();
    await expect(scene.open(1000)).rejects.toMatchObject({ name: 'SendFailure', retryAfterMs: null });
  });

  test.each(['/etc/passwd', '../../getMe', 'a//b', 'http://169.254.169.254/x'])(
    'is not read where the server says %s',
    async (file_path) => {
      await using scene = await receiveFile(new Uint8Array(10));
      scene.fake.failNext('getFile', { result: { file_id: 'x', file_path } });
      await expect(scene.open(1000)).rejects.toMatchObject({ name: 'SendFailure', retryAfterMs: null });
    },
  );
});

describe('what cannot work', () => {
  const options = { webhook: null, runtime: testRuntime('telegram') };
  test.each([
    [{ ...options, token: 'no token', apiRoot: 'https://api.telegram.org' }],
    [{ ...options, token: '1:a/../b', apiRoot: 'https://api.telegram.org' }],
    [{ ...options, token: '1:a', apiRoot: 'file:///etc' }],
    [{ ...options, token: '1:a', apiRoot: 'https://api.telegram.org', webhook: { url: 'https://x', secret: 'ü' } }],
  ])('is refused before anything is sent, without the token', (odd) => {
    expect(() => new Telegram(odd)).toThrow(expect.objectContaining({ code: 'bad_input' }));
    expect(() => new Telegram(odd)).not.toThrow(odd.token);
  });
});
