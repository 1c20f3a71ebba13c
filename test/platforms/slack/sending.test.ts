import { describe, expect, test } from 'vitest';
import type { Outgoing, Place } from '../../../src/platforms/platform.ts';
import { never, until } from '../contract/scene.ts';
import { failureOf, openSlack } from './scene.ts';

type Scene = Awaited<ReturnType<typeof openSlack>>;

const channel: Place = { type: 'channel', chat: 'C1', scope: 'T1' };

describe('a message', () => {
  test('goes to its channel or its thread, as Markdown, and opens no previews', async () => {
    await using scene = await openSlack();
    const { thread = '' } = scene.world.place('thread');
    await scene.platform.send(channel, { text: '# Hi' }, never);
    await scene.platform.send({ ...channel, type: 'thread', thread }, { text: '*a*' }, never);
    const [top, reply] = scene.fake.callsOf('chat.postMessage');
    expect(top).toMatchObject({ channel: 'C1', blocks: [{ type: 'markdown', text: '# Hi' }] });
    expect(top).not.toHaveProperty('thread_ts');
    expect(reply).toMatchObject({ thread_ts: thread, unfurl_links: false, unfurl_media: false });
  });

  test('that Slack cannot read as Markdown arrives as it is', async () => {
    await using scene = await openSlack();
    scene.fake.failNext('chat.postMessage', { error: 'invalid_blocks' });
    const { messageId } = await scene.platform.send(channel, { text: 'a <b> & c' }, never);
    expect(scene.world.shown()).toMatchObject([{ messageId, text: 'a <b> & c' }]);
    scene.fake.failNext('chat.update', { error: 'msg_blocks_too_long' });
    await scene.platform.edit!(channel, messageId, { text: '<d>' }, never);
    expect(scene.world.shown()).toMatchObject([{ messageId, text: '<d>' }]);
  });

  test('to a thread whose beginning was deleted goes to its channel', async () => {
    await using scene = await openSlack();
    const gone: Place = { ...channel, type: 'thread', thread: '1700000000.000100' };
    await scene.platform.send(gone, { text: 'still here' }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'still here', chat: 'C1', thread: null }]);
  });

  test('calls no whole channel, whatever the model says', async () => {
    await using scene = await openSlack();
    const text = '<!channel> <!HERE> `<!everyone>` <!subteam^S1> <@U42> <!DOCTYPE html>';
    await scene.platform.send(channel, { text }, never);
    const [args] = scene.fake.callsOf('chat.postMessage');
    expect(JSON.stringify(args)).not.toMatch(/<!(?:channel|here|everyone|subteam)/i);
    expect(scene.world.shown()[0]?.text).toContain('<@U42> <!DOCTYPE html>');
  });

  test('whose answer was lost is found by its key, in a channel and in a long thread', async () => {
    await using scene = await openSlack();
    const { world, platform, fake } = scene;
    const { thread = '' } = world.place('thread');
    const inThread: Place = { ...channel, type: 'thread', thread };
    for (const place of [channel, inThread]) {
      const talks = place === channel ? 150 : 1100;
      for (let n = 0; n < talks; n += 1)
        fake.workspace.add({ channel: 'C1', thread: place.thread ?? null, text: `talk ${n}` });
      fake.failNext('chat.postMessage', 'lost');
      const key = `key of ${place.type}`;
      expect(await failureOf(platform.send(place, { text: 'once', key }, never))).toMatchObject({ kind: 'uncertain' });
      expect(await platform.findSent!(place, key, never)).toEqual({ messageId: world.shown().at(-1)?.messageId });
      expect(await platform.findSent!(place, `${key}!`, never)).toBeNull();
    }
  });

  test('that Slack limits closes its channel for as long as the header says, and no other', async () => {
    await using scene = await openSlack();
    const send = (place: Place) => scene.platform.send(place, { text: 'x' }, never);
    scene.fake.failNext('chat.postMessage', { retryAfter: '7' });
    expect(await failureOf(send(channel))).toMatchObject({ kind: 'rate_limited', retryAfterMs: 7000 });
    const again = await failureOf(send(channel));
    expect(again).toMatchObject({ kind: 'rate_limited' });
    expect(again.retryAfterMs).toBeLessThanOrEqual(7000);
    await send(scene.world.place('dm'));
    expect(scene.fake.callsOf('chat.postMessage')).toHaveLength(2);
    scene.fake.failNext('chat.update', { retryAfter: null });
    const [{ messageId = '' } = {}] = scene.world.shown();
    const edit = scene.platform.edit!(scene.world.place('dm'), messageId, { text: 'y' }, never);
    expect(await failureOf(edit)).toMatchObject({ kind: 'rate_limited', retryAfterMs: 30_000 });
  });

  test('whose file does not arrive is there, and says what is missing', async () => {
    await using scene = await openSlack();
    scene.fake.failNext('files.completeUploadExternal', { error: 'file_not_found' });
    const file = { kind: 'document', name: '/home/ada/plan.pdf', mime: null, bytes: new Uint8Array(3) } as const;
    await scene.platform.send(channel, { text: 'here', files: [file] }, never);
    expect(scene.world.shown().map(({ text }) => text)).toEqual(['here', '(plan.pdf could not be sent)']);
    scene.fake.failNext('files.getUploadURLExternal', { status: 503 });
    await scene.platform.send(channel, { text: 'again', files: [file] }, never);
    expect(scene.world.shown().at(-1)?.files).toMatchObject([{ name: 'plan.pdf' }]);
  });
});

describe('an answer to a command', () => {
  const answerOf = async (scene: Scene, chat: string) => {
    const answer = await scene.world.command('/moirai', 'status', chat);
    await until(() => scene.inbox.received.length > 0, 'the command');
    const { place, messageId, reply } = scene.inbox.received.at(-1)!;
    const message: Outgoing = { text: '**fine**', reply: { messageId, data: reply!.data, until: reply!.until } };
    return { answer, place, message };
  };

  test('goes where it was given, or to who gave it where the app is no member', async () => {
    await using scene = await openSlack();
    const here = await answerOf(scene, 'C1');
    await scene.platform.send(here.place, here.message, never);
    expect(scene.world.shown()).toMatchObject([{ text: '**fine**', chat: 'C1' }]);
    const elsewhere = await answerOf(scene, 'C404');
    expect(await scene.platform.send(elsewhere.place, elsewhere.message, never)).toEqual({ messageId: '' });
    expect(scene.fake.answers.get(elsewhere.answer)).toMatchObject({
      response_type: 'ephemeral',
      blocks: [{ type: 'markdown', text: '**fine**' }],
    });
  });

  test('that is later than Slack takes it is a channel that cannot be reached', async () => {
    await using scene = await openSlack();
    const { place, message } = await answerOf(scene, 'C404');
    const late = { ...message, reply: { ...message.reply!, until: 1 } };
    expect(await failureOf(scene.platform.send(place, late, never))).toMatchObject({ kind: 'gone' });
  });

  test('takes a sign nowhere: a command is no message', async () => {
    await using scene = await openSlack();
    const { place, message } = await answerOf(scene, 'C1');
    await scene.platform.react!(place, message.reply!.messageId, 'seen', never);
    expect(scene.fake.callsOf('reactions.add')).toEqual([]);
  });
});

describe('the assistant', () => {
  test('offers prompts in a thread that somebody opens', async () => {
    await using scene = await openSlack();
    const { chat, thread } = scene.world.place('dm');
    scene.world.event({
      type: 'assistant_thread_started',
      assistant_thread: { user_id: 'U42', context: {}, channel_id: chat, thread_ts: thread },
    });
    await until(() => scene.fake.workspace.prompts.length === 1, 'the prompts');
    const [{ prompts, ...where }] = scene.fake.workspace.prompts as [{ prompts: { message: string }[] }];
    expect(where).toEqual({ channel_id: chat, thread_ts: thread });
    expect(prompts.map(({ message }) => message)).toContain('/help');
  });

  test('shows a status in its own threads and nowhere else', async () => {
    await using scene = await openSlack();
    for (const place of [channel, scene.world.place('thread'), scene.world.place('dm')]) {
      await scene.platform.showTyping!(place, never);
    }
    const { chat, thread } = scene.world.place('dm');
    expect(scene.fake.workspace.statuses).toMatchObject([{ channel_id: chat, thread_ts: thread }]);
  });
});

describe('a file', () => {
  test('is not fetched with our token from anybody else, and a page to log in at is no file', async () => {
    await using scene = await openSlack();
    const file = scene.fake.workspace.addFile(
      'a.txt',
      'text/plain',
      Buffer.from('<!DOCTYPE html><title>Sign in</title>'),
    );
    const open = () => scene.platform.openFile!(file.id, 1000, never);
    expect(await failureOf(open())).toMatchObject({ kind: 'forbidden' });
    const elsewhere = { ok: true, file: { id: file.id, size: 1, url_private_download: 'ftp://elsewhere.test/a' } };
    scene.fake.failNext('files.info', { answer: elsewhere });
    expect(await failureOf(open())).toMatchObject({ retryAfterMs: null });
    expect(await failureOf(scene.platform.openFile!('F404', 1000, never))).toMatchObject({ retryAfterMs: null });
  });

  test('that is larger than it says is stopped while it is read', async () => {
    await using scene = await openSlack();
    const file = scene.fake.workspace.addFile('a.bin', 'application/octet-stream', new Uint8Array(5000), 10);
    expect(await failureOf(scene.platform.openFile!(file.id, 1000, never))).toMatchObject({ kind: 'too_large' });
  });
});

test('the places that the app is in are listed with their names', async () => {
  await using scene = await openSlack();
  const places = await scene.platform.listPlaces!(never);
  expect(places).toContainEqual({ type: 'channel', chat: 'C1', scope: 'T1', name: '#general' });
  expect(places).toContainEqual({ type: 'dm', chat: 'D42', scope: 'T1' });
  expect(await scene.platform.identify!(never)).toBe('@moirai in Test (UBOT)');
});

test('people have the names that Slack knows them by, asked for once', async () => {
  await using scene = await openSlack();
  for (const text of ['one', 'two']) await scene.world.say({ text });
  await until(() => scene.inbox.received.length === 2, 'both');
  expect(scene.inbox.received.map(({ from }) => from.name)).toEqual(['Person U42', 'Person U42']);
  expect(scene.fake.callsOf('users.info')).toHaveLength(1);
});
