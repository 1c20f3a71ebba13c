import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { patience } from '../../support/patience.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { openScene, qqAt } from './scenes.ts';
import { QqWorld } from './world.ts';

const textsOf = (inbox: TestInbox): string[] => {
  const ids = inbox.received.map(({ id }) => id);
  return inbox.received.filter(({ id }, index) => ids.indexOf(id) === index).map(({ text }) => text);
};

describe('a session of the gateway', () => {
  test('is gone on with from what the inbox has, not from what was seen', async () => {
    await using scene = await openScene();
    await scene.world.say({ text: 'taken' });
    await until(() => scene.inbox.texts.includes('taken'), 'the first');
    const open = scene.inbox.hold();
    await scene.world.say({ text: 'held', person: 1 });
    await scene.world.say({ text: 'behind', person: 2 });
    await until(() => scene.inbox.tried.length === 3, 'what is held');
    scene.world.cut();
    const { gateway } = scene.world.server;
    await until(() => gateway.resumed.length === 1, 'the resumption');
    await until(() => scene.platform.state.phase === 'connected', 'connected again');
    open();
    // The greeting and the first message have the numbers 1 and 2.
    expect(gateway.resumed).toEqual([{ session: 'session-1', seq: 2 }]);
    await until(() => scene.inbox.received.length >= 3, 'all');
    await sleep(20);
    // What came again while it was being handed over was not handed over twice.
    expect(scene.inbox.texts).toEqual(['taken', 'held', 'behind']);
  });

  test('that QQ has forgotten is made anew, and nothing that had come is lost', async () => {
    await using scene = await openScene();
    const open = scene.inbox.hold();
    const before = ['one', 'two', 'three'];
    for (const text of before) await scene.world.say({ text });
    await until(() => scene.inbox.tried.length === 1, 'the first');
    const { gateway } = scene.world.server;
    gateway.forget();
    gateway.say({ op: 9, d: false });
    await until(() => gateway.identified.length === 2 && gateway.isConnected, 'a new session');
    await scene.world.say({ text: 'four' });
    open();
    await until(() => scene.inbox.received.length === 4, 'all of them');
    expect(scene.inbox.texts).toEqual([...before, 'four']);
    expect(gateway.lost).toBe(0);
  });

  test('is gone on with by the next process, from what the inbox has', async () => {
    await using scene = await openScene();
    await scene.world.say({ text: 'taken' });
    await until(() => scene.inbox.texts.includes('taken'), 'the first');
    await scene.platform.stop();
    for (const text of ['away one', 'away two']) await scene.world.say({ text });
    const next = qqAt(scene.world, 'websocket', scene.state);
    const inbox = new TestInbox();
    await next.platform.start(inbox);
    await until(() => inbox.received.length >= 2, 'what was said meanwhile');
    expect(textsOf(inbox)).toEqual(['away one', 'away two']);
    expect(scene.world.server.gateway.identified).toHaveLength(1);
    await next.platform.stop();
  });

  test('is known to the next process from its beginning', async () => {
    await using scene = await openScene('websocket', undefined, 1);
    const open = scene.inbox.hold();
    await scene.world.say({ text: 'precious' });
    await until(() => scene.inbox.tried.length === 1, 'the try');
    // The process before this one has not stopped: it was killed.
    const next = qqAt(scene.world, 'websocket', scene.state, 1);
    const inbox = new TestInbox();
    await next.platform.start(inbox);
    await until(() => inbox.texts.includes('precious'), 'what nobody had taken', 3000).finally(open);
    await next.platform.stop();
  });

  test('that is new is known to the next process, also while what came before is not taken', async () => {
    await using scene = await openScene();
    const open = scene.inbox.hold();
    await scene.world.say({ text: 'from before' });
    await until(() => scene.inbox.tried.length === 1, 'the try');
    const { gateway } = scene.world.server;
    gateway.forget();
    gateway.say({ op: 9, d: false });
    await until(() => gateway.identified.length === 2 && gateway.isConnected, 'a new session');
    await scene.world.say({ text: 'precious', person: 1 });
    await until(() => scene.inbox.tried.length === 2, 'the second try');
    const next = qqAt(scene.world, 'websocket', scene.state);
    const inbox = new TestInbox();
    await next.platform.start(inbox);
    await until(() => inbox.texts.includes('precious'), 'what nobody had taken', 3000).finally(open);
    await next.platform.stop();
  });

  test('is not kept beyond what the inbox could not take', async () => {
    await using scene = await openScene();
    scene.inbox.refuseNext(Number.POSITIVE_INFINITY);
    await scene.world.say({ text: 'refused' });
    await scene.world.say({ text: 'taken by nobody', person: 1 });
    await until(() => scene.inbox.tried.length > 2, 'some tries');
    await scene.platform.stop();
    const next = qqAt(scene.world, 'websocket', scene.state);
    const inbox = new TestInbox();
    await next.platform.start(inbox);
    await until(() => inbox.received.length >= 2, 'both');
    expect(textsOf(inbox).sort()).toEqual(['refused', 'taken by nobody']);
    await next.platform.stop();
  });

  test('that was kept in a way nobody can read is made anew', async () => {
    await using world = await QqWorld.open('websocket');
    for (const kept of ['{', '[]', '{"session":5,"seq":1}', '{"session":"x","seq":"1","self":{"id":"7"}}']) {
      const { platform } = qqAt(world, 'websocket', new Map([['gateway', kept]]));
      await platform.start(new TestInbox());
      await until(() => platform.state.phase === 'connected', 'connected');
      await platform.stop();
    }
    expect(world.server.gateway.identified).toHaveLength(4);
  });
});

describe('a connection', () => {
  const reconnections = ({ world }: Awaited<ReturnType<typeof openScene>>) => {
    const { identified, resumed } = world.server.gateway;
    return { identified: identified.length, resumed: resumed.length };
  };

  test.each([
    ['is asked to be made again', { op: 7 }],
    ['has a session that may be resumed', { op: 9, d: true }],
  ])('that %s is made again and goes on', async (_, frame) => {
    await using scene = await openScene();
    scene.world.server.gateway.say(frame);
    await until(() => reconnections(scene).resumed === 1, 'the resumption');
    expect(reconnections(scene).identified).toBe(1);
  });

  test.each([4008, 4009, 1000, 4999])('that is closed with %i goes on', async (code) => {
    await using scene = await openScene();
    scene.world.server.gateway.close(code);
    await until(() => reconnections(scene).resumed === 1, 'the resumption');
    expect(reconnections(scene).identified).toBe(1);
  });

  test.each([4006, 4007, 4900, 4913])('that is closed with %i begins anew', async (code) => {
    await using scene = await openScene();
    scene.world.server.gateway.close(code);
    await until(() => reconnections(scene).identified === 2, 'the new session');
    expect(reconnections(scene).resumed).toBe(0);
  });

  test.each([
    [4001, 'opcode'],
    [4914, 'sandbox'],
    [4915, 'banned'],
  ])('that is closed with %i is given up, and says why', async (code, why) => {
    await using scene = await openScene();
    scene.world.server.gateway.close(code);
    await until(() => scene.platform.state.phase === 'failed', 'failed');
    expect(scene.platform.state.problem).toContain(why);
  });

  test('whose token is refused gets another', async () => {
    await using scene = await openScene();
    scene.world.server.dropToken();
    scene.world.server.gateway.close(4004);
    await until(() => reconnections(scene).resumed === 1, 'the resumption');
    expect(scene.world.server.tokensGiven).toBe(2);
  });

  test('that is too fast for QQ waits a minute', async () => {
    await using scene = await openScene();
    const started = performance.now();
    scene.world.server.gateway.close(4008);
    await until(() => reconnections(scene).resumed === 1, 'the resumption');
    // Time runs a hundred times as fast.
    expect(performance.now() - started).toBeGreaterThanOrEqual(590);
  });

  test('on which nothing is answered is made again', async () => {
    await using scene = await openScene('websocket', ({ server }) => {
      server.gateway.heartbeatMs = 2000;
      server.gateway.isSilent = true;
    });
    await until(() => reconnections(scene).resumed > 0, 'the resumption');
    expect(scene.warnings.join('\n')).toContain('the gateway does not answer');
  });

  test('for a bot that may not have all events asks for fewer, and says so', async () => {
    const groupsAndPresses = (1 << 25) | (1 << 26);
    await using scene = await openScene('websocket', ({ server }) => {
      server.gateway.allowedIntents = groupsAndPresses;
    });
    const { identified } = scene.world.server.gateway;
    expect(identified.map(({ intents }) => intents & ~groupsAndPresses)).toEqual([expect.any(Number), 0]);
    expect(identified[1]).toEqual({ intents: groupsAndPresses, shard: [0, 1] });
    expect(scene.warnings.join('\n')).toContain('without guilds');
  });

  test('for a bot that may not have presses of buttons hears people without them', async () => {
    await using scene = await openScene('websocket', ({ server }) => {
      server.gateway.allowedIntents = 1 << 25;
    });
    expect(scene.world.server.gateway.identified.at(-1)).toEqual({ intents: 1 << 25, shard: [0, 1] });
    await scene.world.say({ text: 'hello' });
    await until(() => scene.inbox.texts.includes('hello'), 'the message');
  });

  test('that ends each time as soon as it is there is made again with more patience each time', async () => {
    await using scene = await openScene('websocket', undefined, 20);
    const { gateway } = scene.world.server;
    const started = performance.now();
    const cutting = setInterval(() => {
      if (scene.platform.state.phase === 'connected') gateway.cut();
    }, 1);
    await until(() => gateway.resumed.length >= 4, 'four resumptions').finally(() => clearInterval(cutting));
    // Half of 1, 2, 4 and 8 seconds at least, twenty times as fast.
    expect(performance.now() - started).toBeGreaterThan(375);
  });

  test('for a bot that may have no events is given up', async () => {
    await using world = await QqWorld.open('websocket');
    world.server.gateway.allowedIntents = 0;
    const { platform } = qqAt(world);
    await platform.start(new TestInbox());
    await until(() => platform.state.phase === 'failed', 'failed');
    expect(platform.state.problem).toContain('may not have the events');
    await platform.stop();
  });

  test('is stopped at once while it is being made', async () => {
    await using world = await QqWorld.open('websocket');
    world.server.gateway.closeWith = 1001;
    const { platform } = qqAt(world);
    await platform.start(new TestInbox());
    await until(() => platform.state.phase === 'degraded', 'degraded');
    const started = performance.now();
    await platform.stop();
    expect(performance.now() - started).toBeLessThan(patience(1000));
    expect(platform.state.phase).toBe('stopped');
  });

  test('survives what no gateway says', async () => {
    await using scene = await openScene();
    const odd = [null, 5, [], { op: 'x' }, { op: 0 }, { op: 0, t: 'READY' }, { op: 0, t: 5, d: 5, s: 'x' }, { op: 99 }];
    for (const frame of odd) scene.world.server.gateway.say(frame as never);
    await scene.world.say({ text: 'still there?' });
    await until(() => scene.inbox.texts.includes('still there?'), 'the message');
  });
});
