import { describe, expect, test } from 'vitest';
import { measureText } from '../../../src/platforms/matrix/compose.ts';
import { splitText } from '../../../src/platforms/split-text.ts';
import type { Fault } from '../../fakes/matrix-server.ts';
import { never, until } from '../contract/scene.ts';
import { openMatrix } from './open-matrix.ts';
import { dmOf, personOf } from './world.ts';

const DM = dmOf(0);

async function open() {
  const scene = await openMatrix();
  const started = await scene.begin();
  const { world, fake } = scene;
  const contents = () => fake.callsOf('send').map(({ body }) => JSON.parse(body.toString('utf8')));
  const failureOf = (work: Promise<unknown>) => work.catch((thrown: unknown) => thrown);
  return { ...scene, ...started, dm: world.place('dm'), contents, failureOf };
}

type Scene = Awaited<ReturnType<typeof open>>;

describe('a message', () => {
  test('goes out as plain words, and as HTML where words are marked', async () => {
    await using scene = await open();
    await scene.platform.send(scene.dm, { text: 'plain <words>', key: 'a' }, never);
    await scene.platform.send(scene.dm, { text: '**bold**', key: 'b' }, never);
    expect(scene.contents()).toEqual([
      { msgtype: 'm.text', body: 'plain <words>', 'm.mentions': {} },
      {
        ...{ msgtype: 'm.text', body: '**bold**', 'm.mentions': {} },
        ...{ format: 'org.matrix.custom.html', formatted_body: '<strong>bold</strong>' },
      },
    ]);
  });

  test('says which one it answers, and tells its author', async () => {
    await using scene = await open();
    const replyTo = await scene.world.say({ text: 'question', where: 'group' });
    await until(() => scene.inbox.texts.includes('question'), 'the question');
    await scene.platform.send(scene.world.place('group'), { text: 'answer', replyTo, key: 'a' }, never);
    expect(scene.contents()).toMatchObject([
      {
        'm.mentions': { user_ids: [personOf(0)] },
        'm.relates_to': { 'm.in_reply_to': { event_id: replyTo } },
      },
    ]);
  });

  test('in a thread names the thread, and what clients without threads show', async () => {
    await using scene = await open();
    const place = scene.world.place('thread');
    const reply = { messageId: '$question', data: {}, until: null };
    await scene.platform.send(place, { text: 'answer', reply, key: 'a' }, never);
    await scene.platform.send(place, { text: 'to you', replyTo: '$question', key: 'b' }, never);
    const thread = { rel_type: 'm.thread', event_id: '$root', 'm.in_reply_to': { event_id: '$question' } };
    expect(scene.contents().map((content) => content['m.relates_to'])).toEqual([
      { ...thread, is_falling_back: true },
      { ...thread, is_falling_back: false },
    ]);
  });

  test('that is changed keeps its place, and names the one it changes', async () => {
    await using scene = await open();
    const { messageId } = await scene.platform.send(scene.dm, { text: 'one', key: 'a' }, never);
    const long = `two ${'x'.repeat(9000)}`;
    await scene.platform.edit(scene.dm, messageId, { text: long }, never);
    const change = scene.contents().at(-1);
    expect(change).toMatchObject({
      'm.new_content': { msgtype: 'm.text', body: long, 'm.mentions': {} },
      'm.relates_to': { rel_type: 'm.replace', event_id: messageId },
    });
    expect(change.body.length).toBeLessThan(1100);
    expect(scene.world.shown()).toMatchObject([{ messageId, text: long }]);
  });

  test('that somebody removed is not changed, where nobody would see it', async () => {
    await using scene = await open();
    const { messageId } = await scene.platform.send(scene.dm, { text: 'growing', key: 'a' }, never);
    scene.world.takeBack(DM, messageId);
    await until(() => scene.inbox.events.length === 1, 'that it was removed');
    const failure = await scene.failureOf(scene.platform.edit(scene.dm, messageId, { text: 'whole', key: 'b' }, never));
    expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
    expect(failure).not.toMatchObject({ kind: 'gone' });
  });

  test('of any size is split so that the server takes every part, also as a change', async () => {
    await using scene = await open();
    const { platform, dm } = scene;
    const text = Array.from({ length: 4000 }, (_, i) => `**${i}** "<&>" \\ 😀 \u0001 [x](https://e.org/${i})`).join(
      '\n',
    );
    const { abilities } = platform;
    const parts = splitText(text, { ...abilities, rendered: measureText });
    expect(parts.length).toBeGreaterThan(5);
    for (const [i, part] of parts.entries()) {
      const { messageId } = await platform.send(dm, { text: part, key: `part ${i}` }, never);
      await platform.edit(dm, messageId, { text: part }, never);
    }
    expect(scene.world.shown()).toHaveLength(parts.length);
    const plain = splitText('x'.repeat(200_000), { ...abilities, rendered: measureText });
    for (const [i, part] of plain.entries()) await platform.send(dm, { text: part, key: `plain ${i}` }, never);
    expect(scene.world.shown()).toHaveLength(parts.length + plain.length);
  });
});

describe('the key of a message', () => {
  test('is the same transaction in every process, so that files and words arrive once', async () => {
    await using scene = await open();
    const bytes = new TextEncoder().encode('a,b');
    const file = { kind: 'document', name: '/home/agent/table.csv', mime: 'text/csv', bytes } as const;
    const message = { text: 'look', files: [file], key: 'dlv_1' };
    scene.fake.failNext('upload', { html: 502 });
    expect(await scene.failureOf(scene.platform.send(scene.dm, message, never))).toMatchObject({ kind: 'transient' });
    await scene.platform.stop();
    const next = await scene.begin();
    await next.platform.send(scene.dm, message, never);
    await next.platform.send(scene.dm, message, never);
    expect(scene.world.shown().map(({ text, files }) => [text, files.map(({ name }) => name)])).toEqual([
      ['look', []],
      ['', ['table.csv']],
    ]);
    expect(scene.contents().at(-1)).toMatchObject({ msgtype: 'm.file', info: { mimetype: 'text/csv', size: 3 } });
  });

  test('of a change is another one than that of the message', async () => {
    await using scene = await open();
    const { messageId } = await scene.platform.send(scene.dm, { text: 'part', key: 'k' }, never);
    await scene.platform.edit(scene.dm, messageId, { text: 'whole', key: 'k' }, never);
    await scene.platform.edit(scene.dm, messageId, { text: 'whole', key: 'k' }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'whole' }]);
    const said = scene.fake.rooms.room(DM).events.filter(({ sender, type }) => {
      return sender === scene.fake.self && type === 'm.room.message';
    });
    expect(said).toHaveLength(2);
  });
});

describe('a file', () => {
  const file = { kind: 'image', name: 'a.png', mime: null, bytes: new Uint8Array(10) } as const;

  test('that the server finds too large is named instead, and fails alone', async () => {
    await using scene = await open();
    const tooLarge = { status: 413, errcode: 'M_TOO_LARGE' };
    scene.fake.failNext('upload', tooLarge, tooLarge);
    await scene.platform.send(scene.dm, { text: 'look', files: [file], key: 'a' }, never);
    expect(scene.world.shown().map(({ text }) => text)).toEqual(['look', '(a.png could not be sent)']);
    const failure = await scene.failureOf(scene.platform.send(scene.dm, { text: '', files: [file], key: 'b' }, never));
    expect(failure).toMatchObject({ kind: 'too_large', retryAfterMs: null });
  });

  test.each([
    ['image', 'm.image'],
    ['sticker', 'm.image'],
    ['audio', 'm.audio'],
    ['voice', 'm.audio'],
    ['video', 'm.video'],
    ['document', 'm.file'],
  ] as const)('of the kind %s is a %s', async (kind, msgtype) => {
    await using scene = await open();
    await scene.platform.send(scene.dm, { text: '', files: [{ ...file, kind }], key: 'a' }, never);
    expect(scene.contents()).toMatchObject([{ msgtype, filename: 'a.png' }]);
    expect(scene.contents()[0]['org.matrix.msc3245.voice'] !== undefined).toBe(kind === 'voice');
  });

  test('is read with the token, from the older address where the server knows no other', async () => {
    await using scene = await open();
    const { fake, platform } = scene;
    fake.media.set('far.org/x', { bytes: new TextEncoder().encode('data'), name: null });
    fake.isOld = true;
    const bytes = await platform.openFile('mxc://far.org/x', 100, never);
    expect(Buffer.from(bytes).toString()).toBe('data');
    expect(fake.callsOf('old_download').map(({ authorization }) => authorization)).toEqual([`Bearer ${fake.token}`]);
  });

  test('is read from nowhere else, however large it says it is, and not by any other address', async () => {
    await using scene = await open();
    const { fake, platform } = scene;
    fake.media.set('far.org/away', { bytes: new Uint8Array(1), name: null, redirect: 'http://127.0.0.1:9/x' });
    fake.media.set('far.org/large', { bytes: new Uint8Array(5000), name: null });
    expect(await scene.failureOf(platform.openFile('mxc://far.org/away', 100, never))).toMatchObject({
      name: 'SendFailure',
    });
    expect(await scene.failureOf(platform.openFile('mxc://far.org/large', 100, never))).toMatchObject({
      kind: 'too_large',
    });
    const asked = fake.calls.length;
    for (const odd of ['mxc://../x', 'https://far.org/x', 'mxc://far.org/x/y', '']) {
      expect(await scene.failureOf(platform.openFile(odd, 100, never))).toMatchObject({ retryAfterMs: null });
    }
    expect(fake.calls).toHaveLength(asked);
  });
});

describe('a sign', () => {
  test('that a process before this one put there is found and taken away', async () => {
    await using scene = await open();
    const messageId = await scene.world.say({ text: 'work' });
    await scene.platform.react(scene.dm, messageId, 'seen', never);
    await scene.platform.stop();
    const next = await scene.begin();
    scene.fake.rooms.append(DM, {
      ...{ type: 'm.reaction', sender: personOf(0) },
      content: { 'm.relates_to': { rel_type: 'm.annotation', event_id: messageId, key: '👀' } },
    });
    await next.platform.react(scene.dm, messageId, 'done', never);
    const signs = scene.fake.reactionsAt(DM, messageId).map(({ sender, content }) => {
      return [sender, (content['m.relates_to'] as { key: string }).key];
    });
    expect(signs).toEqual([
      [personOf(0), '👀'],
      [scene.fake.self, '✅'],
    ]);
  });

  test('is one also when several are put there at once', async () => {
    await using scene = await open();
    const messageId = await scene.world.say({ text: 'work' });
    await Promise.all(
      (['seen', 'done', 'seen', 'failed'] as const).map((sign) =>
        scene.platform.react(scene.dm, messageId, sign, never),
      ),
    );
    expect(scene.fake.reactionsAt(DM, messageId)).toHaveLength(1);
  });

  test('that a person takes away is told', async () => {
    await using scene = await open();
    const messageId = await scene.world.say({ text: 'work' });
    const relation = { rel_type: 'm.annotation', event_id: messageId, key: '👍' };
    const sign = scene.world.add(DM, 0, { 'm.relates_to': relation }, 'm.reaction');
    await until(() => scene.inbox.events.length === 1, 'the sign');
    scene.world.takeBack(DM, sign);
    await until(() => scene.inbox.events.length === 2, 'that it is gone');
    expect(scene.inbox.events).toMatchObject([
      { kind: 'reaction_added', messageId, reaction: '👍' },
      { kind: 'reaction_removed', messageId, reaction: '👍' },
    ]);
  });
});

test('people see how far their messages were taken', async () => {
  await using scene = await open();
  const { inbox } = scene;
  const letGo = inbox.hold();
  await scene.world.say({ text: 'one' });
  const last = await scene.world.say({ text: 'two' });
  await until(() => inbox.tried.length === 1, 'the try');
  expect(scene.fake.receipts.get(DM)).toBeUndefined();
  letGo();
  await until(() => scene.fake.receipts.get(DM) === last, 'the receipt of the newest');
});

test('a server that asks for patience hears nothing meanwhile that could be left out', async () => {
  await using scene = await open();
  const limit = { status: 429, errcode: 'M_LIMIT_EXCEEDED', headers: { 'retry-after': '3600' } };
  scene.fake.failNext('send', limit);
  const failure = await scene.failureOf(scene.platform.send(scene.dm, { text: 'x', key: 'a' }, never));
  expect(failure).toMatchObject({ kind: 'rate_limited', retryAfterMs: 3_600_000 });
  expect(await scene.failureOf(scene.platform.send(scene.dm, { text: 'y', key: 'b' }, never))).toMatchObject({
    kind: 'rate_limited',
  });
  await scene.platform.showTyping(scene.dm, never);
  await scene.world.say({ text: 'hello' });
  await until(() => scene.inbox.texts.includes('hello'), 'the message');
  expect(scene.fake.callsOf('send')).toHaveLength(1);
  expect([scene.fake.typed, scene.fake.receipts.size]).toEqual([0, 0]);
});

describe('a refusal', () => {
  test.each([
    ['too long for an event', { status: 413, errcode: 'M_TOO_LARGE' }, 'too_long', null],
    ['not allowed there', { status: 403, errcode: 'M_FORBIDDEN' }, 'forbidden', null],
    ['in a room that is not there', { status: 404, errcode: 'M_NOT_FOUND' }, 'gone', null],
    ['of a server that knows no such call', { status: 404, errcode: 'M_UNRECOGNIZED' }, 'unknown', null],
    ['not what the server can read', { status: 400, errcode: 'M_BAD_JSON' }, 'bad_format', null],
    ['with a token that does not count', { status: 401, errcode: 'M_UNKNOWN_TOKEN' }, 'forbidden', 60_000],
    ['of too much, as older servers say it', limited({ retry_after_ms: 2500 }), 'rate_limited', 2500],
    ['of too much, as newer servers say it', limited({}, { 'retry-after': '3' }), 'rate_limited', 3000],
    ['of too much, said in both ways', limited({ retry_after_ms: 2500 }, { 'retry-after': '3' }), 'rate_limited', 3000],
    ['of too much, without a time', limited({}), 'rate_limited', 1000],
    ['of a server that is overloaded', { status: 503, errcode: 'M_UNKNOWN' }, 'transient', 1000],
    ['by something that is no homeserver', { html: 502 }, 'transient', 1000],
    ['by a page that says all is well', { html: 200 }, 'transient', 1000],
    ['that nobody heard', 'cut', 'uncertain', 1000],
  ] as [string, Fault, string, number | null][])('%s', async (_, fault, kind, retryAfterMs) => {
    await using scene: Scene = await open();
    scene.fake.failNext('send', fault);
    const failure = await scene.failureOf(scene.platform.send(scene.dm, { text: 'x', key: 'a' }, never));
    expect(failure).toMatchObject({ name: 'SendFailure', kind, retryAfterMs });
    expect(String(failure)).not.toContain(scene.fake.token);
  });
});

function limited(more: Record<string, unknown>, headers: Record<string, string> = {}): Fault {
  return { status: 429, errcode: 'M_LIMIT_EXCEEDED', more, headers };
}
