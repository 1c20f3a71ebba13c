import { describe, expect, test } from 'vitest';
import type { SendFailure } from '../../../src/platforms/platform.ts';
import { answerable, never } from '../contract/scene.ts';
import { openScene, qqAt } from './scenes.ts';
import { GROUP, personId } from './world.ts';

const DM = { type: 'dm', chat: personId(0) } as const;

async function openGrowing() {
  const scene = await openScene();
  const { reply } = await answerable({ driver: scene.world as never, inbox: scene.inbox });
  const { server } = scene.world;
  const frames = () => server.callsTo('POST', /stream_messages$/).map(({ body }) => body);
  const stream = await scene.platform.startStream(DM, { key: 'trn_1:live', reply });
  const next = () => qqAt(scene.world, 'websocket', scene.state).platform;
  return { ...scene, reply, server, frames, stream, next, [Symbol.asyncDispose]: () => scene[Symbol.asyncDispose]() };
}

describe('a growing answer', () => {
  test('is one stream with one number, and each frame begins with what was shown', async () => {
    await using scene = await openGrowing();
    for (const text of ['One', 'One two', 'One two', 'One two three <@']) await scene.stream.append(text, never);
    const sent = await scene.stream.finish({ text: 'One two three <@1>', key: 'dlv_1', reply: scene.reply }, never);
    expect(scene.frames().map(({ content_raw, index, input_state }) => [content_raw, index, input_state])).toEqual([
      ['One', 0, 1],
      ['One two', 1, 1],
      ['One two three <', 2, 1],
      ['One two three <\u200b@1>', 3, 10],
    ]);
    expect(new Set(scene.frames().map(({ msg_seq }) => msg_seq)).size).toBe(1);
    expect(scene.frames().map(({ msg_id }) => msg_id)).toEqual(Array(4).fill(scene.reply.messageId));
    expect(sent.messageId).toBe(`${scene.reply.messageId}/${String(scene.frames()[0]?.msg_seq)}`);
  });

  test('goes on in the next process, which does not know what was shown', async () => {
    await using scene = await openGrowing();
    await scene.stream.append('One two three', never);
    const resumed = scene.next().resumeStream(DM, scene.stream.handle);
    // What is shorter than what people see changes nothing.
    await resumed.append('One two', never);
    await resumed.append('One two three four', never);
    expect(scene.world.shown()).toMatchObject([{ text: 'One two three four', stream: 'open' }]);
    await resumed.finish({ text: 'One two three four five' }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'One two three four five', stream: 'finished' }]);
  });

  test('that the next process ends otherwise ends below what was shown', async () => {
    await using scene = await openGrowing();
    await scene.stream.append('Let me look', never);
    await scene.next().resumeStream(DM, scene.stream.handle).finish({ text: 'Nothing found.' }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'Let me look\n\nNothing found.', stream: 'finished' }]);
  });

  test('that was ended is not ended by the next process once more', async () => {
    await using scene = await openGrowing();
    await scene.stream.finish({ text: 'All of it.' }, never);
    const frames = scene.frames().length;
    await scene.next().resumeStream(DM, scene.stream.handle).finish({ text: 'All of it.' }, never);
    expect(scene.frames()).toHaveLength(frames);
  });

  test.each(['All of it.', 'Something else.'])('whose end was not answered is not said again: %s', async (text) => {
    await using scene = await openGrowing();
    await scene.stream.append('All of', never);
    const end = () => scene.next().resumeStream(DM, scene.stream.handle).finish({ text }, never);
    // What does not begin with what people see is refused first, and then added to it.
    if (!text.startsWith('All of')) scene.server.failNext({ status: 404, code: 40007 });
    scene.world.loseAnswer();
    await expect(end()).rejects.toMatchObject({ kind: 'uncertain' });
    expect(await end()).toEqual({ messageId: scene.stream.handle });
    expect(scene.world.shown()).toMatchObject([{ stream: 'finished' }]);
    expect(scene.world.shown()[0]?.text.endsWith(text)).toBe(true);
  });

  test('whose end was refused has not ended when it is refused again', async () => {
    await using scene = await openGrowing();
    await scene.stream.append('All of', never);
    const end = () => scene.next().resumeStream(DM, scene.stream.handle).finish({ text: 'All of it.' }, never);
    for (const _ of ['once', 'again']) {
      scene.server.failNext({ status: 400, code: 99_999 });
      await expect(end()).rejects.toMatchObject({ kind: 'unknown', retryAfterMs: null });
    }
    await end();
    expect(scene.world.shown()).toMatchObject([{ text: 'All of it.', stream: 'finished' }]);
  });

  test('that would become too long below what was shown is ended, and its reply is not taken for sent', async () => {
    await using scene = await openGrowing();
    await scene.stream.append('x'.repeat(2000), never);
    const end = () => {
      const resumed = scene.next().resumeStream(DM, scene.stream.handle);
      return resumed.finish({ text: 'y'.repeat(3000) }, never);
    };
    await expect(end()).rejects.toMatchObject({ kind: 'too_long', retryAfterMs: null });
    expect(scene.world.shown()).toMatchObject([{ stream: 'finished' }]);
    await expect(end()).rejects.toMatchObject({ retryAfterMs: null });
  });

  test('that comes too late says so', async () => {
    await using scene = await openGrowing();
    scene.world.closeWindow();
    const failure = await scene.stream.append('late', never).catch((thrown: unknown) => thrown as SendFailure);
    expect(failure).toMatchObject({ kind: 'expired' });
  });

  test('of which QQ wants to hear less often is let alone', async () => {
    await using scene = await openGrowing();
    scene.world.limitRate(5000);
    await expect(scene.stream.append('One', never)).rejects.toMatchObject({ kind: 'rate_limited' });
    const calls = scene.frames().length;
    await expect(scene.stream.append('One two', never)).rejects.toMatchObject({ kind: 'rate_limited' });
    expect(scene.frames()).toHaveLength(calls);
  });

  test('needs a message that it answers, and a person', async () => {
    await using scene = await openScene();
    const begun = async () => await scene.platform.startStream(DM, { key: 'k' });
    await expect(begun()).rejects.toMatchObject({ name: 'SendFailure', retryAfterMs: null });
    expect(scene.platform.abilitiesAt(DM).streams).toBe(true);
    expect(scene.platform.abilitiesAt({ type: 'group', chat: GROUP }).streams).toBe(false);
  });
});
