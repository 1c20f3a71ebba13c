import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type Place, SendFailure } from '../../../src/platforms/platform.ts';
import type { Fault } from '../../fakes/discord.ts';
import type { Json } from '../../fakes/discord-state.ts';
import { patience } from '../../support/patience.ts';
import { never, until } from '../contract/scene.ts';
import { openScene, sentTo } from './scene.ts';
import { CHANNEL, dmOf, POST } from './world.ts';

type Scene = Awaited<ReturnType<typeof openScene>>;

const file = (name: string, size = 3) => {
  return { kind: 'document', name, mime: null, bytes: new Uint8Array(size).fill(1) } as const;
};

async function failureOf(call: Promise<unknown>): Promise<SendFailure> {
  const thrown = await call.then(
    () => null,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(SendFailure);
  return thrown as SendFailure;
}

function send(scene: Scene, fault: Fault, place: Place = scene.world.place('group')) {
  scene.fake.failNext('POST /messages', fault);
  return scene.platform.send(place, { text: 'x' }, never);
}

describe('a message', () => {
  test('carries a key of 25 signs that is the same at every attempt, and notifies nobody', async () => {
    await using scene = await openScene();
    const place = scene.world.place('group');
    const text = '@everyone <@100000000000042000> <@&1>';
    for (const key of ['dlv_a', 'dlv_a', 'dlv_b']) await scene.platform.send(place, { text, key }, never);
    const [first, second, third] = sentTo(scene.fake, CHANNEL);
    expect(String(first?.nonce)).toMatch(/^[\w-]{25}$/);
    expect(second?.nonce).toBe(first?.nonce);
    expect(third?.nonce).not.toBe(first?.nonce);
    expect(first).toMatchObject({ enforce_nonce: true, allowed_mentions: { parse: [] } });
    expect(scene.world.shown()).toHaveLength(2);
    await scene.platform.edit!(place, scene.world.shown()[0]!.messageId, { text }, never);
    expect(scene.fake.callsOf('PATCH', /messages/)[0]?.body).toMatchObject({ allowed_mentions: { parse: [] } });
  });

  test('shows long output of tools in frames beside its words, within what Discord takes', async () => {
    await using scene = await openScene();
    const output = `${'line of output\n'.repeat(2000)}\`\`\`not the end\`\`\``;
    const details = ['run_command', 'read_file', 'search'].map((title) => ({ title, text: output }));
    await scene.platform.send(scene.world.place('dm'), { text: 'Done.', details }, never);
    const [body] = sentTo(scene.fake, dmOf());
    const embeds = body?.embeds as { title: string; description: string }[];
    expect(embeds.map(({ title }) => title)).toEqual(['run_command', 'read_file', 'search']);
    for (const { description } of embeds) {
      expect(description.startsWith('```\nline of output\n')).toBe(true);
      expect(description.endsWith('more characters)\n```')).toBe(true);
      expect(description.split('```')).toHaveLength(3);
    }
    const { messageId } = await scene.platform.send(scene.world.place('dm'), { text: 'Short.' }, never);
    await scene.platform.edit!(
      scene.world.place('dm'),
      messageId,
      { text: 'Short.', details: [{ title: 'a', text: 'b`' }] },
      never,
    );
    expect(scene.fake.callsOf('PATCH', /messages/)[0]?.body).toMatchObject({
      embeds: [{ title: 'a', description: '```\nb`\n```' }],
    });
  });

  test('with many files becomes several, and says what is missing when one of them does not arrive', async () => {
    await using scene = await openScene();
    const files = Array.from({ length: 12 }, (_, n) => file(`/home/secret/f${n}.bin`));
    await scene.platform.send(scene.world.place('dm'), { text: 'all', files, key: 'dlv_1' }, never);
    const shown = scene.world.shown();
    expect(shown.map((each) => each.files.length)).toEqual([10, 2]);
    expect(shown[0]?.files[0]?.name).toBe('f0.bin');
    const big = [file('a.bin', 9_000_000), file('b.bin', 9_000_000), file('c.bin', 9_000_000)];
    scene.fake.failNext('POST /messages', { status: 413, body: { code: 40005, message: 'Request entity too large' } });
    expect(
      await failureOf(scene.platform.send(scene.world.place('dm'), { text: 'big', files: big }, never)),
    ).toMatchObject({
      kind: 'too_large',
      retryAfterMs: null,
    });
    const before = scene.world.shown().length;
    const sending = scene.platform.send(scene.world.place('dm'), { text: 'big', files: big }, never);
    await until(() => scene.world.shown().length > before, 'the first part');
    scene.fake.failNext('POST /messages', { status: 413, body: { code: 40005, message: 'Request entity too large' } });
    await sending;
    expect(
      scene.world
        .shown()
        .slice(before)
        .map(({ text, files: sent }) => [text, sent.length]),
    ).toEqual([
      ['big', 2],
      ['(c.bin could not be sent)', 0],
    ]);
  }, 30_000);

  test('with a button whose data is too long is refused before it is sent', async () => {
    await using scene = await openScene();
    const buttons = [[{ label: 'Yes', data: 'x'.repeat(65) }]];
    const failure = await failureOf(scene.platform.send(scene.world.place('dm'), { text: 'x', buttons }, never));
    expect(failure).toMatchObject({ kind: 'bad_format', retryAfterMs: null });
    expect(scene.fake.calls).toEqual([]);
  });

  test('loses its buttons when it is changed to have none', async () => {
    await using scene = await openScene();
    const place = scene.world.place('dm');
    const buttons = [Array.from({ length: 7 }, (_, n) => ({ label: `B${n}`, data: `d${n}` }))];
    const { messageId } = await scene.platform.send(place, { text: 'choose', buttons }, never);
    expect(scene.world.shown()[0]?.buttons).toHaveLength(7);
    await scene.platform.edit!(place, messageId, { text: 'chosen' }, never);
    expect(scene.world.shown()[0]).toMatchObject({ text: 'chosen', buttons: [] });
  });
});

describe("Discord's limits", () => {
  test('are kept by the headers of the answers before: what would be too much is not even asked', async () => {
    await using scene = await openScene(1);
    scene.fake.buckets.messages = { limit: 3, ms: 1500 };
    const place = scene.world.place('group');
    for (const text of ['1', '2', '3']) await scene.platform.send(place, { text }, never);
    const failure = await failureOf(scene.platform.send(place, { text: '4' }, never));
    expect(failure.kind).toBe('rate_limited');
    expect(failure.retryAfterMs).toBeGreaterThan(0);
    expect(failure.retryAfterMs).toBeLessThan(1700);
    expect(sentTo(scene.fake, CHANNEL)).toHaveLength(3);
    // Another channel has a limit of its own.
    await scene.platform.send(scene.world.place('dm'), { text: 'elsewhere' }, never);
    await sleep(failure.retryAfterMs! + 50);
    await scene.platform.send(place, { text: '4' }, never);
    expect(scene.world.shown().map(({ text }) => text)).toEqual(['1', '2', '3', 'elsewhere', '4']);
  });

  test('of everything together are kept for every channel: for a moment by waiting, else by a refusal', async () => {
    await using scene = await openScene(1);
    const limited = (seconds: number) => ({
      status: 429,
      body: { message: 'You are being rate limited.', retry_after: seconds, global: true },
      headers: { 'retry-after': String(seconds), 'x-ratelimit-global': 'true', 'x-ratelimit-scope': 'global' },
    });
    scene.fake.failNext('POST /messages', limited(1));
    const said = performance.now();
    const first = scene.platform.send(scene.world.place('group'), { text: 'first' }, never);
    await until(() => scene.fake.callsOf('POST', /messages/).length === 1, 'the refusal');
    await sleep(100);
    await Promise.all([first, scene.platform.send(scene.world.place('dm'), { text: 'second' }, never)]);
    expect(performance.now() - said).toBeGreaterThan(950);
    expect(
      scene.world
        .shown()
        .map(({ text }) => text)
        .toSorted(),
    ).toEqual(['first', 'second']);
    expect(await failureOf(send(scene, limited(30)))).toMatchObject({ kind: 'rate_limited' });
    const other = await failureOf(scene.platform.send(scene.world.place('dm'), { text: 'x' }, never));
    expect(other).toMatchObject({ kind: 'rate_limited' });
    expect(other.retryAfterMs).toBeGreaterThan(28_000);
    expect(scene.world.shown()).toHaveLength(2);
  });

  test('of everything together delay a crowd, and refuse nobody', async () => {
    await using scene = await openScene(1);
    await scene.connected();
    const people = Array.from({ length: 120 }, (_, person) => person);
    for (const person of people) await scene.world.say({ text: 'hi', person });
    const began = performance.now();
    await Promise.all(
      people.map((person) => scene.platform.send(scene.world.place('dm', person), { text: 'x' }, never)),
    );
    const ms = performance.now() - began;
    expect(scene.world.shown()).toHaveLength(120);
    // 50 in each second: two whole ones have to pass.
    expect(ms).toBeGreaterThan(1900);
    expect(ms).toBeLessThan(patience(5000));
  });

  test('for typing and for changes keep no message back', async () => {
    await using scene = await openScene();
    const place = scene.world.place('dm');
    const { messageId } = await scene.platform.send(place, { text: 'one' }, never);
    const headers = { 'retry-after': '30', 'x-ratelimit-scope': 'user' };
    const limited = { status: 429, body: { message: 'No', retry_after: 30, global: false }, headers };
    scene.fake.failNext('POST /typing', limited);
    scene.fake.failNext('PATCH /messages', limited);
    await failureOf(scene.platform.showTyping!(place, never));
    const failure = await failureOf(scene.platform.edit!(place, messageId, { text: 'two' }, never));
    expect(failure).toMatchObject({ kind: 'rate_limited' });
    expect(failure.retryAfterMs).toBeGreaterThanOrEqual(30_000);
    // Not asked again before that.
    await failureOf(scene.platform.edit!(place, messageId, { text: 'two' }, never));
    expect(scene.fake.callsOf('PATCH', /messages/)).toHaveLength(1);
    await scene.platform.send(place, { text: 'three' }, never);
    expect(scene.world.shown().map(({ text }) => text)).toEqual(['one', 'three']);
  });

  test('for signs are waited for: the last sign stands alone in the end, also in the next process', async () => {
    await using scene = await openScene(1);
    const messageId = await (async () => {
      await scene.connected();
      return scene.world.say({ text: 'work' });
    })();
    const place = scene.world.place('dm');
    await scene.platform.react!(place, messageId, 'seen', never);
    await scene.restart().react!(place, messageId, 'done', never);
    expect(scene.world.reactions(messageId)).toEqual(['✅']);
    // A command is no message.
    await scene.platform.react!(place, 'interaction-1437000000000000001', 'seen', never);
  });
});

describe('a failure', () => {
  const refused = (status: number, code: number, more: Json = {}): Fault => ({
    status,
    body: { code, message: 'No', ...more },
  });
  const tooLong = {
    errors: { content: { _errors: [{ code: 'BASE_TYPE_MAX_LENGTH', message: 'Must be 2000 or fewer in length.' }] } },
  };

  test.each([
    ['an unknown channel', refused(404, 10003), 'gone', false],
    ['a server the bot left', refused(403, 10004), 'gone', false],
    ['a channel the bot cannot see', refused(403, 50001), 'gone', false],
    ['a person who takes no messages', refused(403, 50007), 'gone', false],
    ['a person without a common server', refused(403, 50278), 'gone', false],
    ['a permission that is missing', refused(403, 50013), 'forbidden', false],
    ['a rule of the server', refused(403, 200000), 'forbidden', false],
    ['a text that is too long', refused(400, 50035, tooLong), 'too_long', false],
    ['a form that is wrong', refused(400, 50035), 'bad_format', false],
    ['a forum itself', refused(400, 50008), 'bad_format', false],
    ['a file that is too large', refused(413, 40005), 'too_large', false],
    ['files that are too large for the proxy', { status: 413, html: true }, 'too_large', false],
    ['slow mode', refused(429, 20016), 'rate_limited', true],
    ['the limit of a channel', refused(400, 20028), 'rate_limited', true],
    ['an overload', refused(503, 130000), 'transient', true],
    ['a gateway that is down', { status: 502, html: true }, 'transient', true],
    ['a guard without a code', { status: 403, html: true }, 'transient', true],
    ['a token that is not known', refused(401, 0), 'forbidden', true],
    ['something new', refused(400, 99_999), 'unknown', false],
    ['a cut connection', 'cut', 'uncertain', true],
    ['an answer that is none', { status: 200, body: [] as unknown as Json }, 'uncertain', true],
  ] as const)('by %s says whether to try again', async (_, fault, kind, mayPass) => {
    await using scene = await openScene();
    const failure = await failureOf(send(scene, fault));
    expect(failure.kind).toBe(kind);
    expect(failure.retryAfterMs !== null).toBe(mayPass);
    expect(failure.message).not.toContain(scene.fake.token);
  });

  test('to reach the server at all is one that passes, and the token that was refused once is tried again', async () => {
    await using scene = await openScene();
    scene.fake.revoked = true;
    expect(await failureOf(scene.platform.send(scene.world.place('dm'), { text: 'x' }, never))).toMatchObject({
      kind: 'forbidden',
    });
    scene.fake.revoked = false;
    await scene.platform.send(scene.world.place('dm'), { text: 'y' }, never);
    await scene.fake.close();
    // The connection that was open before may have taken something with it; those after it do not come to be.
    await failureOf(scene.platform.send(scene.world.place('dm'), { text: 'z' }, never));
    const failure = await failureOf(scene.platform.send(scene.world.place('dm'), { text: 'z' }, never));
    expect(failure).toMatchObject({ kind: 'transient' });
  });

  test('to change what is gone or too old makes the gateway send it anew', async () => {
    await using scene = await openScene();
    const place = scene.world.place('dm');
    const gone = await failureOf(scene.platform.edit!(place, '1437000000000000001', { text: 'x' }, never));
    expect(gone).toMatchObject({ kind: 'unknown', retryAfterMs: null });
    expect(await failureOf(scene.platform.edit!(place, 'no id', { text: 'x' }, never))).toMatchObject({
      retryAfterMs: null,
    });
  });
});

describe('a thread', () => {
  const state = (scene: Scene) =>
    scene.fake.channels.get(POST)?.thread_metadata as { archived: boolean; locked: boolean };

  test('that was archived comes back by what is sent there', async () => {
    await using scene = await openScene();
    state(scene).archived = true;
    await scene.platform.send(scene.world.place('thread'), { text: 'still here' }, never);
    expect(scene.world.shown().at(-1)).toMatchObject({ text: 'still here', thread: POST });
    expect(state(scene).archived).toBe(false);
  });

  test('that is locked is a failure that says so, and the place is not given up', async () => {
    await using scene = await openScene();
    state(scene).locked = true;
    const failure = await failureOf(scene.platform.send(scene.world.place('thread'), { text: 'x' }, never));
    expect(failure).toMatchObject({ kind: 'forbidden', retryAfterMs: null });
    expect(failure.message).toContain('locked');
  });

  test('that was deleted is gone, and that is told as it happens', async () => {
    await using scene = await openScene();
    await scene.connected();
    const thread = scene.fake.channels.get(POST)!;
    scene.fake.channels.delete(POST);
    scene.fake.gateway.dispatch('THREAD_DELETE', {
      id: POST,
      type: 11,
      guild_id: thread.guild_id,
      parent_id: thread.parent_id,
    });
    await until(() => scene.inbox.events.length === 1, 'the event');
    expect(scene.inbox.events[0]).toMatchObject({ kind: 'removed', place: scene.world.place('thread') });
    const failure = await failureOf(scene.platform.send(scene.world.place('thread'), { text: 'x' }, never));
    expect(failure).toMatchObject({ kind: 'gone', retryAfterMs: null });
  });

  test('in which a message cannot be changed because it is archived is no place that is given up', async () => {
    await using scene = await openScene();
    const place = scene.world.place('thread');
    const { messageId } = await scene.platform.send(place, { text: 'one' }, never);
    state(scene).archived = true;
    const failure = await failureOf(scene.platform.edit!(place, messageId, { text: 'two' }, never));
    expect(failure).toMatchObject({ kind: 'forbidden', retryAfterMs: null });
  });
});
