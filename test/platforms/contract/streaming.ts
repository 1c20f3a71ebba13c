import { expect, test } from 'vitest';
import { SendFailure } from '../../../src/platforms/platform.ts';
import { answerable, never, openStarted, type PlatformUnderTest } from './scene.ts';

/** Replies that the platform itself shows growing. */
export function streamingContract({ abilities, ...under }: PlatformUnderTest): void {
  if (!abilities.streams) return;
  const platformUnderTest = { abilities, ...under };
  const whole = 'One, two, three, four.';

  test('a stream grows, and ends as the whole reply', async () => {
    await using scene = await openStarted(platformUnderTest);
    const { reply } = await answerable(scene);
    const stream = await scene.platform.startStream!(scene.driver.place('dm'), { key: 'trn_a:live', reply }, never);
    for (const text of ['One,', 'One, two,', 'One, two, three,']) await stream.append(text, never);
    expect(scene.driver.shown()).toMatchObject([{ stream: 'open' }]);
    expect(whole.startsWith(scene.driver.shown()[0]!.text.trim())).toBe(true);
    await stream.finish({ text: whole, key: 'dlv_a', reply }, never);
    expect(scene.driver.shown()).toMatchObject([{ text: whole, stream: 'finished' }]);
  });

  test('a stream that a process before this one began is ended by its handle, and ending it again changes nothing', async () => {
    await using scene = await openStarted(platformUnderTest);
    const { reply } = await answerable(scene);
    const place = scene.driver.place('dm');
    const { handle, append } = await begin(scene, reply);
    await append('One, two,');
    const next = await scene.driver.restart!();
    for (const _ of ['once', 'again']) {
      await next.resumeStream!(place, handle).finish({ text: whole, key: 'dlv_a', reply }, never);
    }
    expect(scene.driver.shown()).toMatchObject([{ stream: 'finished' }]);
    expect(scene.driver.shown()[0]?.text.endsWith(whole)).toBe(true);
  });

  test('a reply that is not what was shown so far is shown as it is', async () => {
    await using scene = await openStarted(platformUnderTest);
    const { reply } = await answerable(scene);
    const stream = await scene.platform.startStream!(scene.driver.place('dm'), { key: 'trn_a:live', reply }, never);
    await stream.append('Let me look.', never);
    await stream.append('Nothing found yet', never);
    await stream.finish({ text: whole, key: 'dlv_a', reply }, never);
    const [shown, ...more] = scene.driver.shown();
    expect(more).toEqual([]);
    expect(shown?.stream).toBe('finished');
    expect(shown?.text.endsWith(whole)).toBe(true);
  });

  test('ending a stream that is gone is a failure that no trying mends', async () => {
    await using scene = await openStarted(platformUnderTest);
    const { reply } = await answerable(scene);
    const { handle } = await begin(scene, reply);
    const failure = await scene.platform.resumeStream!(scene.driver.place('dm'), handle.replaceAll(/[0-9a-z]/gi, '0'))
      .finish({ text: whole, key: 'dlv_a', reply }, never)
      .catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(SendFailure);
    expect(failure).toMatchObject({ retryAfterMs: null });
  });
}

async function begin(
  { platform, driver }: Awaited<ReturnType<typeof openStarted>>,
  reply: Awaited<ReturnType<typeof answerable>>['reply'],
) {
  const stream = await platform.startStream!(driver.place('dm'), { key: 'trn_a:live', reply }, never);
  return { handle: stream.handle, append: (text: string) => stream.append(text, never) };
}
