import { describe, expect, test } from 'vitest';
import { descriptor } from '../../../src/platforms/slack/descriptor.ts';
import { TestInbox, testRuntime, until } from '../contract/scene.ts';
import { openSlack } from './scene.ts';

describe('what was missed', () => {
  test('in a channel, in a thread that is known and in one that began meanwhile is asked for, in order', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world, driver } = scene;
    const { thread } = world.place('thread');
    world.tell({ text: 'in the channel', channel: 'C1' });
    world.tell({ text: 'in the thread', channel: 'C1', thread: thread! });
    await until(() => inbox.received.length === 2, 'both');
    await scene.platform.stop();
    fake.delivery.forget();
    const root = world.tell({ text: 'missed 1', channel: 'C1' });
    world.tell({ text: 'missed 2', channel: 'C1', thread: thread! });
    world.tell({ text: 'missed 3', channel: 'C1', thread: root.ts });
    world.tell({ text: 'missed 4', channel: 'C1' });
    const next = await driver.restart!();
    const missed = new TestInbox();
    await next.start(missed);
    await until(() => missed.received.length === 4, 'what was missed');
    expect(missed.texts).toEqual(['missed 1', 'missed 2', 'missed 3', 'missed 4']);
    expect(missed.received.map(({ place }) => place.thread)).toEqual([undefined, thread, root.ts, undefined]);
  });

  test('in a new thread of the assistant is found by its chat', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world, driver } = scene;
    await world.say({ text: 'known' });
    await until(() => inbox.received.length === 1, 'the first');
    await scene.platform.stop();
    fake.delivery.forget();
    const root = fake.workspace.add({ channel: 'D42', isBot: true, subtype: 'assistant_app_thread', text: 'New' });
    world.tell({ text: 'in a new thread', channel: 'D42', thread: root.ts });
    const next = await driver.restart!();
    const missed = new TestInbox();
    await next.start(missed);
    await until(() => missed.received.length === 1, 'what was missed');
    expect(missed.received[0]).toMatchObject({ text: 'in a new thread', place: { type: 'dm', thread: root.ts } });
  });

  test('waits for as long as Slack says, and what is said meanwhile comes behind it', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world, driver } = scene;
    world.tell({ text: 'before', channel: 'C1' });
    await until(() => inbox.received.length === 1, 'the first');
    await scene.platform.stop();
    fake.delivery.forget();
    world.tell({ text: 'missed', channel: 'C1' });
    fake.failNext('conversations.history', { retryAfter: '30' }, 2);
    const next = await driver.restart!();
    const later = new TestInbox();
    const started = performance.now();
    await next.start(later);
    await until(() => next.state.phase === 'connected', 'connected');
    world.tell({ text: 'live', channel: 'C1' });
    await until(() => later.received.length === 2, 'both');
    expect(later.texts).toEqual(['missed', 'live']);
    expect(performance.now() - started).toBeGreaterThan(590);
  });

  test('is asked for until Slack answers again, also when that takes minutes', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world, driver, warnings } = scene;
    world.tell({ text: 'before', channel: 'C1' });
    await until(() => inbox.received.length === 1, 'the first');
    await scene.platform.stop();
    fake.delivery.forget();
    world.tell({ text: 'missed', channel: 'C1' });
    fake.failNext('conversations.history', { status: 503 }, 12);
    const next = await driver.restart!();
    const later = new TestInbox();
    await next.start(later);
    await until(() => later.received.length === 1, 'what was missed');
    expect(later.texts).toEqual(['missed']);
    expect(warnings.join('\n')).not.toContain('may be missing');
  });

  test('in a channel comes, though one of its threads cannot be asked for', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world, driver, warnings } = scene;
    const { thread } = world.place('thread');
    world.tell({ text: 'in the channel', channel: 'C1' });
    world.tell({ text: 'in the thread', channel: 'C1', thread: thread! });
    await until(() => inbox.received.length === 2, 'both');
    await scene.platform.stop();
    fake.delivery.forget();
    world.tell({ text: 'missed', channel: 'C1' });
    fake.failNext('conversations.replies', { error: 'missing_scope' });
    const next = await driver.restart!();
    const later = new TestInbox();
    await next.start(later);
    await until(() => later.received.length === 1, 'what was missed');
    expect(later.texts).toEqual(['missed']);
    expect(warnings.join('\n')).toContain('may be missing');
  });

  test('in many new threads is asked for, and where there are more than that it is told', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world, driver, warnings } = scene;
    world.tell({ text: 'before', channel: 'C1' });
    await until(() => inbox.received.length === 1, 'the first');
    await scene.platform.stop();
    fake.delivery.forget();
    for (let n = 0; n < 51; n += 1) {
      const root = world.tell({ text: `root ${n}`, channel: 'C1' });
      world.tell({ text: `reply ${n}`, channel: 'C1', thread: root.ts });
    }
    const next = await driver.restart!();
    const later = new TestInbox();
    await next.start(later);
    await until(() => later.received.length === 51 + 50, 'what was missed');
    expect(warnings.join('\n')).toContain('than is asked for');
  });

  test('that cannot be asked for is told of, and keeps nothing else back', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world, driver, warnings } = scene;
    world.tell({ text: 'before', channel: 'C1' });
    await until(() => inbox.received.length === 1, 'the first');
    await scene.platform.stop();
    fake.failNext('conversations.history', { error: 'missing_scope' });
    const next = await driver.restart!();
    const later = new TestInbox();
    await next.start(later);
    await until(() => next.state.phase === 'connected', 'connected');
    world.tell({ text: 'live', channel: 'C1' });
    await until(() => later.texts.includes('live'), 'what is said now');
    expect(warnings.join('\n')).toContain('may be missing');
  });
});

test('what was kept and cannot be read at once is read later, before anything is begun', async () => {
  await using scene = await openSlack();
  await scene.platform.stop();
  const calls = scene.fake.calls.length;
  const runtime = testRuntime('slack');
  let failures = 2;
  const recall = async (key: string): Promise<string | null> => {
    if (failures-- > 0) throw new RangeError('the store is away');
    return runtime.recall(key);
  };
  const { token, appToken, url: apiRoot } = scene.fake;
  const settings = { token, appToken, signingSecret: null, mode: 'socket', apiRoot };
  const platform = await descriptor.make(settings as never, { ...runtime, recall });
  await platform.start(scene.inbox);
  await until(() => platform.state.phase === 'degraded', 'degraded');
  expect(scene.fake.calls).toHaveLength(calls);
  await until(() => platform.state.phase === 'connected', 'connected');
  await platform.stop();
});
