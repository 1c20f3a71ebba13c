import { describe, expect, test } from 'vitest';
import type { Place } from '../../../src/platforms/platform.ts';
import { renderBeginning, renderMarkdown } from '../../../src/platforms/slack/render.ts';
import { never } from '../contract/scene.ts';
import { failureOf, openSlack } from './scene.ts';

const channel: Place = { type: 'channel', chat: 'C1', scope: 'T1' };

describe('a stream', () => {
  const reply = { messageId: '1.1', data: { user: 'U42', team: 'T1' }, until: null };

  test('in a channel is for whom it answers, and needs a thread', async () => {
    await using scene = await openSlack();
    const place = scene.world.place('thread');
    const stream = await scene.platform.startStream!(place, { key: 'k', reply }, never);
    expect(scene.fake.callsOf('chat.startStream')).toMatchObject([
      { recipient_user_id: 'U42', recipient_team_id: 'T1' },
    ]);
    await stream.append('One', never);
    await stream.finish({ text: 'One, two', buttons: [[{ label: 'More', data: 'more' }]] }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'One, two', thread: place.thread, buttons: ['More'] }]);
    expect(scene.fake.callsOf('chat.update')).toEqual([]);
    for (const [where, opening] of [
      [place, { key: 'k' }],
      [channel, { key: 'k', reply }],
    ] as const) {
      expect(await failureOf(scene.platform.startStream!(where, opening, never))).toMatchObject({ retryAfterMs: null });
    }
    expect(scene.platform.abilitiesAt!(place)).toMatchObject({ streams: true, typing: false });
    expect(scene.platform.abilitiesAt!(channel)).toMatchObject({ streams: false, edit: true });
  });

  test.each([
    ['arrived', 'lost'],
    ['did not arrive', { status: 500 }],
  ] as const)('whose last addition was not answered and %s ends as the whole reply, once', async (_, fault) => {
    await using scene = await openSlack();
    const stream = await scene.platform.startStream!(scene.world.place('dm'), { key: 'k' }, never);
    await stream.append('One', never);
    scene.fake.failNext('chat.appendStream', fault);
    expect(await failureOf(stream.append('One, two', never))).toMatchObject({ kind: 'uncertain' });
    await stream.finish({ text: 'One, two, three' }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'One, two, three', stream: 'finished' }]);
  });

  test('whose end was not answered is ended again without saying anything twice', async () => {
    await using scene = await openSlack();
    const place = scene.world.place('dm');
    const stream = await scene.platform.startStream!(place, { key: 'k' }, never);
    await stream.append('One', never);
    scene.fake.failNext('chat.stopStream', 'lost');
    const finish = () => scene.platform.resumeStream!(place, stream.handle).finish({ text: 'One, two' }, never);
    expect(await failureOf(finish())).toMatchObject({ kind: 'uncertain' });
    await finish();
    expect(scene.world.shown()).toMatchObject([{ text: 'One, two', stream: 'finished' }]);
  });

  test('that a person stops says the whole reply in the end', async () => {
    await using scene = await openSlack();
    const stream = await scene.platform.startStream!(scene.world.place('dm'), { key: 'k' }, never);
    scene.fake.failNext('chat.appendStream', { error: 'stopped_by_user' });
    for (const text of ['One', 'One, two']) await stream.append(text, never);
    expect(scene.fake.callsOf('chat.appendStream')).toHaveLength(1);
    await stream.finish({ text: 'One, two, three' }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'One, two, three', stream: 'finished' }]);
  });

  test('calls no whole channel, however its words are parted', async () => {
    await using scene = await openSlack();
    const stream = await scene.platform.startStream!(scene.world.place('dm'), { key: 'k' }, never);
    for (const text of ['Hi <', 'Hi <!', 'Hi <!chan', 'Hi <!channel> all']) await stream.append(text, never);
    await stream.finish({ text: 'Hi <!channel> all.' }, never);
    const sent = scene.fake.callsOf('chat.appendStream').map(({ markdown_text: text }) => text);
    expect(sent.join('')).not.toContain('<!');
    expect(scene.world.shown()[0]?.text).toBe('Hi <\u2060!channel> all.');
  });
});

test('what was begun is the beginning of what it becomes', () => {
  const text = 'a <!channel> b <!here> <c> <';
  for (let end = 0; end <= text.length; end += 1) {
    expect(renderMarkdown(text).startsWith(renderBeginning(text.slice(0, end)))).toBe(true);
  }
});
