import { describe, expect, test } from 'vitest';
import { Discord } from '../../../src/platforms/discord/platform.ts';
import { SendFailure } from '../../../src/platforms/platform.ts';
import { GUILD } from '../../fakes/discord-state.ts';
import type { ModelScript } from '../../fakes/model-script.ts';
import { lastUserLine } from '../../gateway/user-lines.ts';
import { never, testRuntime, until } from '../contract/scene.ts';
import { PlatformScene } from '../gateway-suite.ts';
import { openScene } from './scene.ts';
import { subject } from './subject.ts';
import { CHANNEL, type DiscordWorld, dmOf, FORUM, POST, person } from './world.ts';

const forum = { type: 'channel', chat: FORUM, scope: GUILD } as const;

describe('a post in a forum', () => {
  test('is opened with a title and tags, and what is sent behind it goes there', async () => {
    await using scene = await openScene();
    const place = { ...forum, opens: { title: 'Weekly report', tags: ['bug', 'Question'] } };
    const sent = await scene.platform.send(place, { text: 'First.', key: 'dlv_1' }, never);
    const [call] = scene.fake.callsOf('POST', /threads$/);
    expect(call?.body).toMatchObject({
      name: 'Weekly report',
      applied_tags: ['200000000000003010', '200000000000003011'],
      message: { content: 'First.', allowed_mentions: { parse: [] } },
    });
    expect(sent.place).toMatchObject({ type: 'thread', chat: FORUM, scope: GUILD, name: 'Weekly report' });
    await scene.platform.send(sent.place!, { text: 'Second.' }, never);
    expect(scene.world.shown().map(({ text, thread }) => [text, thread])).toEqual([
      ['First.', sent.place?.thread],
      ['Second.', sent.place?.thread],
    ]);
  });

  test.each([
    ['a tag that there is not', { title: 'x', tags: ['Recipe'] }, 'no tag Recipe. It has Bug, Question'],
    ['more tags than may be', { title: 'x', tags: ['Bug', 'Bug', 'Bug', 'Bug', 'Bug', 'Bug'] }, 'at most 5 tags'],
  ])('with %s is refused in words', async (_, opens, words) => {
    await using scene = await openScene();
    const failure = await scene.platform.send({ ...forum, opens }, { text: 'x' }, never).catch((e: unknown) => e);
    expect(failure).toBeInstanceOf(SendFailure);
    expect(failure).toMatchObject({ kind: 'bad_format', retryAfterMs: null });
    expect(String(failure)).toContain(words);
  });

  test('in a forum that demands a tag says so, whether we know it before or Discord tells', async () => {
    await using scene = await openScene();
    const opens = { title: 'x', tags: [] };
    scene.fake.failNext('POST /threads', { status: 400, body: { code: 40067, message: 'A tag is required' } });
    const told = await scene.platform.send({ ...forum, opens }, { text: 'x' }, never).catch((e: unknown) => e);
    scene.fake.channels.get(FORUM)!.flags = 1 << 4;
    const known = await scene.platform.send({ ...forum, opens }, { text: 'x' }, never).catch((e: unknown) => e);
    for (const failure of [told, known]) {
      expect(failure).toMatchObject({ kind: 'bad_format', retryAfterMs: null });
      expect(String(failure)).toContain('demands a tag');
    }
  });

  test('can be opened in forums only, and nothing is said in a forum itself', async () => {
    await using scene = await openScene();
    const opens = { title: 'x', tags: [] };
    const inChannel = { ...scene.world.place('group'), opens };
    const failure = await scene.platform.send(inChannel, { text: 'x' }, never).catch((e: unknown) => e);
    expect(String(failure)).toContain('is no forum');
    const itself = await scene.platform.send(forum, { text: 'x' }, never).catch((e: unknown) => e);
    expect(itself).toMatchObject({ kind: 'bad_format', retryAfterMs: null });
    expect(String(itself)).toContain(':new=TITLE');
  });

  test('is opened once, also when the answer of Discord is lost', async () => {
    await using scene = await openScene(1);
    await scene.connected();
    const place = { ...forum, opens: { title: 'Once', tags: [] } };
    scene.fake.failNext('POST /threads', 'lost');
    const send = () => scene.platform.send(place, { text: 'x', key: 'dlv_1' }, never);
    expect(await send().catch((e: unknown) => e)).toMatchObject({ kind: 'uncertain' });
    const { place: opened } = await send();
    expect(scene.world.shown().map(({ thread }) => thread)).toEqual([opened?.thread]);
    // Another post with the same title is another post.
    await scene.platform.send(place, { text: 'x', key: 'dlv_2' }, never);
    expect(scene.world.shown()).toHaveLength(2);
  });

  test('is opened once, also by the process after the one that was killed, however long its title', async () => {
    await using scene = await openScene();
    const place = { ...forum, opens: { title: 'What happened  in the week '.repeat(9), tags: [] } };
    scene.fake.failNext('POST /threads', 'lost');
    const send = (platform = scene.platform) => platform.send(place, { text: 'x', key: 'dlv_1' }, never);
    expect(await send().catch((e: unknown) => e)).toMatchObject({ kind: 'uncertain' });
    expect(scene.platform.abilities.idempotent).toBe(true);
    // Neither knows yet who it is: no gateway was ever connected to.
    const { place: opened } = await send(scene.restart());
    expect(scene.world.shown().map(({ thread }) => thread)).toEqual([opened?.thread]);
  });

  test('is not opened as long as nobody could look for it later', async () => {
    await using scene = await openScene();
    const runtime = testRuntime('discord', 100, scene.state);
    let failures = 1;
    const keep = async (key: string, value: string | null): Promise<void> => {
      if (failures-- > 0) throw new RangeError('the store is away');
      await runtime.keep(key, value);
    };
    const platform = new Discord({ token: scene.fake.token, apiRoot: scene.fake.url, runtime: { ...runtime, keep } });
    const place = { ...forum, opens: { title: 'x', tags: [] } };
    const send = () => platform.send(place, { text: 'x', key: 'dlv_1' }, never);
    expect(await send().catch((e: unknown) => e)).toMatchObject({ kind: 'transient' });
    expect(scene.fake.callsOf('POST', /threads$/)).toEqual([]);
    await send();
    expect(scene.world.shown()).toHaveLength(1);
  });

  test('that the agent opened is a conversation with it: what people answer there is meant for it', async () => {
    await using scene = await openScene();
    await scene.connected();
    const opens = { title: 'Report', tags: [] };
    const { place } = await scene.platform.send({ ...forum, opens }, { text: 'x' }, never);
    scene.fake.say(place!.thread!, person(), { content: 'thanks' });
    await until(() => scene.inbox.received.length === 1, 'the answer');
    expect(scene.inbox.received[0]).toMatchObject({ text: 'thanks', addressed: true, place });
    expect(scene.inbox.events[0]).toMatchObject({ kind: 'added', place });
  });

  test('whose message comes before Discord has told of the post is known all the same', async () => {
    await using scene = await openScene();
    await scene.connected();
    const post = { id: scene.fake.nextId(), type: 11, name: 'Early', parent_id: FORUM, guild_id: GUILD };
    scene.fake.channels.set(post.id, post);
    scene.fake.say(post.id, person(), { content: 'first' });
    scene.fake.gateway.dispatch('THREAD_CREATE', { ...post, newly_created: true });
    scene.fake.say(post.id, person(), { content: 'second' });
    await until(() => scene.inbox.received.length === 2, 'both');
    for (const { place } of scene.inbox.received) {
      expect(place).toMatchObject({ type: 'thread', chat: FORUM, scope: GUILD, thread: post.id, name: 'Early' });
    }
    expect(scene.inbox.texts).toEqual(['first', 'second']);
  });
});

test('the directory has channels, forums and their posts with their names, also those that were archived', async () => {
  await using scene = await openScene();
  const archived = { id: '200000000000003005', type: 11, name: 'Old', parent_id: FORUM, guild_id: GUILD };
  scene.fake.channels.set(archived.id, { ...archived, thread_metadata: { archived: true, locked: false } });
  const locked = { ...archived, id: '200000000000003006', name: 'Locked' };
  scene.fake.channels.set(locked.id, { ...locked, thread_metadata: { archived: true, locked: true } });
  scene.fake.channels.set('200000000000003007', {
    id: '200000000000003007',
    type: 4,
    name: 'Category',
    guild_id: GUILD,
  });
  expect(await scene.platform.listPlaces!(never)).toEqual([
    { type: 'channel', chat: CHANNEL, scope: GUILD, name: 'general' },
    { type: 'channel', chat: FORUM, scope: GUILD, name: 'help' },
    { type: 'thread', chat: FORUM, scope: GUILD, thread: POST, name: 'A question' },
    { type: 'thread', chat: FORUM, scope: GUILD, thread: archived.id, name: 'Old' },
  ]);
});

describe('a file that came', () => {
  const bytes = new TextEncoder().encode('a,b\n');

  async function received(scene: Awaited<ReturnType<typeof openScene>>) {
    await scene.connected();
    const messageId = await scene.world.say({ text: 'look', file: { name: 'a.csv', mime: 'text/csv', bytes } });
    await until(() => scene.inbox.received.length === 1, 'the file');
    const message = scene.fake.historyOf(dmOf()).find(({ id }) => id === messageId)!;
    return { ref: scene.inbox.received[0]!.files[0]!.ref, attachment: (message.attachments as { url: string }[])[0]! };
  }

  test('is read from another address when the one that came with it counts no more', async () => {
    await using scene = await openScene();
    const { ref, attachment } = await received(scene);
    const [[path]] = [...scene.fake.files] as [[string, Uint8Array]];
    scene.fake.files.delete(path);
    scene.fake.files.set('/attachments/fresh/a.csv', bytes);
    attachment.url = 'https://cdn.discordapp.com/attachments/fresh/a.csv?ex=9';
    expect(Buffer.from(await scene.platform.openFile!(ref, 1000, never)).toString()).toBe('a,b\n');
  });

  test('is not read from a host that is none of Discord', async () => {
    await using scene = await openScene();
    const { ref } = await received(scene);
    for (const url of [
      'http://169.254.169.254/latest',
      'https://cdn.discordapp.com.example.org/a',
      'file:///etc/passwd',
      'x',
    ]) {
      const other = JSON.stringify([...(JSON.parse(ref) as string[]).slice(0, 3), url]);
      const failure = await scene.platform.openFile!(other, 1000, never).catch((e: unknown) => e);
      expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
    }
    expect(await scene.platform.openFile!('odd', 1000, never).catch((e: unknown) => e)).toBeInstanceOf(SendFailure);
  });

  test('that was removed meanwhile is a failure that no trying mends', async () => {
    await using scene = await openScene();
    const { ref } = await received(scene);
    scene.fake.files.clear();
    scene.fake.historyOf(dmOf()).splice(0);
    const failure = await scene.platform.openFile!(ref, 1000, never).catch((e: unknown) => e);
    expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
  });
});

test('at a gateway, a post is opened by its target, and what people answer there goes on in one session', async () => {
  await using scene = await PlatformScene.open(subject, subject.modes[0]!);
  const { fake } = scene.world as DiscordWorld;
  await scene.until('the directory', () => fake.callsOf('GET', /archived\/public$/).length > 0);
  await scene.until('the post', async () => {
    await scene.gateway.moirai('send', `discord:${FORUM}:new=Weekly;tags=Question`, 'The report.');
    return fake.callsOf('POST', /threads$/).length > 0;
  });
  await scene.until('its message', () => scene.world.shown().some(({ text }) => text === 'The report.'));
  const post = [...fake.channels.values()].find(({ name }) => name === 'Weekly')!;
  expect(post.applied_tags).toEqual(['200000000000003011']);
  for (const text of ['first', 'second']) {
    fake.say(String(post.id), person(), { content: text });
    await scene.until('the answer', () => scene.world.shown().some((shown) => shown.text.includes(`did: ${text}`)));
  }
  const { data } = await scene.gateway.get<{ data: { key: string }[] }>('/v1/sessions');
  expect(data.map(({ key }) => key)).toEqual([`agent:main:discord:thread:${GUILD}:${FORUM}:${String(post.id)}`]);
});

test('at a gateway, the agent opens one post with a title and tags, however long its text, and answers in it', async () => {
  const report = Array.from({ length: 400 }, (_, line) => `line ${line} of the report`).join('\n');
  const args = { target: `discord:${FORUM}:new=Release day;tags=bug,Question`, text: report };
  const script: ModelScript = ({ body }) => {
    const words = lastUserLine(body.messages);
    if (words !== 'post it') return { text: `did: ${words}` };
    return body.messages.at(-1)?.role === 'tool'
      ? { text: 'Posted.' }
      : { toolCalls: [{ name: 'send_message', args }] };
  };
  await using scene = await PlatformScene.open(subject, subject.modes[0]!, {}, script);
  const { fake } = scene.world as DiscordWorld;
  await scene.until('the directory', () => fake.callsOf('GET', /archived\/public$/).length > 0);
  await scene.world.say({ text: 'post it' });
  const question = () => scene.world.shown().find(({ text }) => text.includes('Allow this?'));
  await scene.until('the question', () => question() !== undefined);
  const { data } = await scene.gateway.get<{ data: { id: string }[] }>('/v1/approvals');
  await scene.world.press!(question()!.messageId, `approval:once:${data[0]?.id}`);
  const inPosts = () => scene.world.shown().filter(({ thread }) => thread !== null);
  const last = report.slice(report.lastIndexOf('\n') + 1);
  await scene.until('the end of the report', () => inPosts().some(({ text }) => text.includes(last)));
  const [post, ...others] = [...fake.channels.values()].filter(({ name }) => name === 'Release day');
  expect(others).toEqual([]);
  expect(post?.applied_tags).toEqual(['200000000000003010', '200000000000003011']);
  expect(new Set(inPosts().map(({ thread }) => thread))).toEqual(new Set([post?.id]));
  const lines = inPosts().flatMap(({ text }) => text.split('\n').filter((line) => line.startsWith('line ')));
  expect(lines).toEqual(report.split('\n'));
  fake.say(String(post?.id), person(), { content: 'thanks' });
  await scene.until('the answer', () => inPosts().some(({ text }) => text.includes('did: thanks')));
});
