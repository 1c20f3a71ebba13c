import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { isGatewayAddress } from '../../../src/platforms/discord/gateway.ts';
import { Discord } from '../../../src/platforms/discord/platform.ts';
import { GUILD } from '../../fakes/discord-state.ts';
import { patience } from '../../support/patience.ts';
import { TestInbox, testRuntime, until } from '../contract/scene.ts';
import { keptPosition, openScene } from './scene.ts';
import { CHANNEL, dmOf, FORUM, person } from './world.ts';

describe('the kept position', () => {
  test('stays before the first message that is not taken, whatever other chats do', async () => {
    await using scene = await openScene();
    await scene.connected();
    const receive = scene.inbox.receive.bind(scene.inbox);
    let refusing = true;
    scene.inbox.receive = async (message) => {
      if (refusing && message.place.chat === dmOf(1)) throw new RangeError('not now');
      await receive(message);
    };
    await scene.world.say({ text: 'a1' });
    await until(() => scene.inbox.texts.length === 1, 'the first');
    await scene.world.say({ text: 'b1', person: 1 });
    const [session] = [...scene.fake.gateway.sessions.values()];
    const stuckAt = session!.log.at(-1)!.s;
    for (const text of ['a2', 'a3']) await scene.world.say({ text });
    await until(() => scene.inbox.texts.length === 3, 'those of the other chat');
    expect(scene.inbox.texts).toEqual(['a1', 'a2', 'a3']);
    await scene.platform.stop();
    expect(keptPosition(scene.state)).toBeLessThan(stuckAt);
    refusing = false;
    await scene.restart().start(scene.inbox);
    await until(() => scene.inbox.texts.includes('b1'), 'the one that was refused');
    await until(() => keptPosition(scene.state) === session!.log.at(-1)!.s, 'the position of the last');
  });

  test('is where the next process goes on, and what it had not taken comes again', async () => {
    await using scene = await openScene();
    await scene.connected();
    await scene.world.say({ text: 'taken' });
    await until(() => scene.inbox.texts.length === 1, 'the first');
    await until(() => scene.fake.gateway.isListenedTo && keptPosition(scene.state) !== null, 'a position');
    scene.inbox.refuseNext(1_000_000);
    await scene.world.say({ text: 'not taken' });
    await until(() => scene.inbox.tried.length > 1, 'a try');
    await scene.platform.stop();
    const next = scene.restart();
    const inbox = new TestInbox();
    await next.start(inbox);
    await until(() => inbox.texts.includes('not taken'), 'what was not taken');
    expect(scene.fake.gateway.beginnings).toEqual(['identify', 'resume']);
    expect(inbox.texts.filter((text) => text !== 'taken')).toEqual(['not taken']);
  });

  test('is none while what came before a new session is not durable: the next process begins anew and asks for it', async () => {
    await using scene = await openScene();
    await scene.connected();
    await scene.world.say({ text: 'before' });
    await until(() => scene.inbox.texts.length === 1, 'the first');
    scene.world.invalidate();
    scene.world.cut();
    await scene.world.say({ text: 'missed' });
    scene.inbox.refuseNext(1_000_000);
    await until(() => scene.inbox.tried.some(({ text }) => text === 'missed'), 'a try');
    await scene.platform.stop();
    expect(keptPosition(scene.state)).toBeNull();
    const inbox = new TestInbox();
    await scene.restart().start(inbox);
    await until(() => inbox.texts.includes('missed'), 'what was missed');
    expect(scene.fake.gateway.beginnings.at(-1)).toBe('identify');
  });

  test('lets the next process know places of which Discord tells nothing again', async () => {
    await using scene = await openScene();
    await scene.connected();
    await scene.platform.stop();
    const inbox = new TestInbox();
    await scene.restart().start(inbox);
    await scene.world.say({ text: 'in the post', where: 'thread' });
    await scene.world.say({ text: 'in the channel', where: 'group' });
    const hidden = { channel_id: '200000000000003999', guild_id: GUILD };
    scene.fake.gateway.dispatch('MESSAGE_CREATE', {
      ...{ ...hidden, id: scene.fake.nextId(), author: person(), content: 'where nobody else sees it' },
    });
    await until(() => inbox.received.length === 3, 'all of them');
    expect(scene.fake.gateway.beginnings).toEqual(['identify', 'resume']);
    const places = Object.fromEntries(inbox.received.map(({ text, place }) => [text, place]));
    expect(places['in the post']).toMatchObject(scene.world.place('thread'));
    expect(places['in the channel']).toMatchObject(scene.world.place('group'));
    expect(places['where nobody else sees it']).toEqual({ type: 'channel', chat: hidden.channel_id, scope: GUILD });
  });

  test('takes little room, however many channels there are', async () => {
    await using scene = await openScene();
    await scene.connected();
    for (let n = 0; n < 2000; n += 1) {
      const id = String(400_000_000_000_000_000n + (BigInt(n) << 22n));
      scene.fake.gateway.dispatch('MESSAGE_CREATE', {
        ...{ id: scene.fake.nextId(), channel_id: id, type: 0, content: 'hi', author: person(1) },
      });
    }
    await until(() => scene.inbox.received.length === 2000, 'all of them', 30_000);
    await scene.platform.stop();
    const sizes = [...scene.state.values()].map((value) => value.length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(60_000);
  });
});

test('what was kept and cannot be read at once is read later, before anything is begun', async () => {
  await using scene = await openScene();
  const runtime = testRuntime('discord', 100, scene.state);
  let failures = 2;
  const recall = async (key: string): Promise<string | null> => {
    if (failures-- > 0) throw new RangeError('the store is away');
    return runtime.recall(key);
  };
  const options = { token: scene.fake.token, apiRoot: scene.fake.url, runtime: { ...runtime, recall } };
  const platform = new Discord(options);
  await platform.start(scene.inbox);
  await until(() => platform.state.phase === 'degraded', 'degraded');
  expect(scene.fake.calls).toEqual([]);
  await until(() => platform.state.phase === 'connected', 'connected');
  await platform.stop();
});

describe('the end of a connection', () => {
  test('is followed by the same session where Discord asks to connect again, and nobody hears of it', async () => {
    await using scene = await openScene();
    await scene.connected();
    scene.fake.gateway.order(7);
    await until(() => scene.fake.gateway.beginnings.length === 2, 'the second connection');
    await scene.world.say({ text: 'after' });
    await until(() => scene.inbox.texts.length === 1, 'what is said then');
    expect(scene.fake.gateway.beginnings).toEqual(['identify', 'resume']);
    expect(scene.platform.state.phase).toBe('connected');
    expect(scene.warnings).toEqual([]);
  });

  test('is noticed when heartbeats are not answered', async () => {
    await using scene = await openScene();
    scene.fake.gateway.heartbeatMs = 50;
    scene.fake.gateway.deaf = true;
    await scene.connected();
    await until(() => scene.fake.gateway.beginnings.length >= 2, 'another connection');
    scene.fake.gateway.deaf = false;
    expect(scene.fake.gateway.beginnings[1]).toBe('resume');
    await scene.world.say({ text: 'there?' });
    await until(() => scene.inbox.texts.includes('there?'), 'what is said then');
  });

  test('at a stop keeps the session', async () => {
    await using scene = await openScene();
    await scene.connected();
    await scene.platform.stop();
    await until(() => scene.fake.gateway.closes.length === 1, 'the end');
    expect(scene.fake.gateway.closes).toEqual([4200]);
    expect(scene.fake.gateway.sessions.size).toBe(1);
  });

  test.each([
    [4004, 'does not know the token'],
    [4011, 'demands sharding'],
    [4014, 'Message Content Intent'],
  ])('with code %i is final, and says what to do', async (code, words) => {
    await using scene = await openScene();
    scene.fake.gateway.turnAway.push(code);
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'failed', 'failed');
    await sleep(100);
    expect(scene.platform.state.problem).toContain(words);
    expect(scene.fake.gateway.closes).toHaveLength(1);
    expect(scene.warnings).toHaveLength(1);
  });

  test.each([4000, 4008, 1000, 1011])('with code %i passes, and is not met with hurry', async (code) => {
    await using scene = await openScene();
    scene.fake.gateway.turnAway.push(code, code, code, code);
    const started = performance.now();
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'connected', 'connected');
    // Half of 1, 2, 4 and 8 seconds at least, a hundred times as fast.
    expect(performance.now() - started).toBeGreaterThan(75);
    expect(scene.warnings.length).toBeGreaterThan(0);
  });

  test('in a session that Discord has forgotten begins another, and not at once', async () => {
    await using scene = await openScene();
    await scene.connected();
    scene.fake.gateway.sessions.clear();
    scene.fake.gateway.order(9, false);
    await until(() => scene.fake.gateway.beginnings.length === 2, 'another session');
    expect(scene.fake.gateway.beginnings).toEqual(['identify', 'identify']);
  });

  test('while it is still being made takes no time, and leaves no error behind', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    await using scene = await openScene();
    const { port } = silent.address() as { port: number };
    Object.defineProperty(scene.fake, 'socketUrl', { get: () => `ws://127.0.0.1:${port}` });
    await scene.platform.start(scene.inbox);
    await until(() => sockets.size > 0, 'the beginning of a connection');
    const started = performance.now();
    await scene.platform.stop();
    expect(performance.now() - started).toBeLessThan(patience(2000));
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => silent.close(() => resolve()));
    await sleep(20);
  });

  test('for good, as long as no session is left today, is waited for', async () => {
    await using scene = await openScene();
    scene.fake.sessionsLeft = 0;
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'degraded', 'degraded');
    expect(scene.platform.state.problem).toContain('too often today');
    scene.fake.sessionsLeft = 10;
    await until(() => scene.platform.state.phase === 'connected', 'connected');
  });
});

describe('what was missed', () => {
  test('is asked for in channels, forums and direct chats, page by page, also where nobody had talked before', async () => {
    await using scene = await openScene();
    await scene.connected();
    await scene.world.say({ text: 'hello' });
    await scene.world.say({ text: 'in the post', where: 'thread' });
    await until(() => scene.inbox.texts.length === 2, 'both');
    scene.world.invalidate();
    scene.world.cut();
    const many = Array.from({ length: 230 }, (_, n) => `missed ${n}`);
    for (const text of many) await scene.world.say({ text });
    await scene.world.say({ text: 'in the channel', where: 'group' });
    await scene.world.say({ text: 'in the post again', where: 'thread' });
    const post = { id: scene.fake.nextId(), type: 11, name: 'New', parent_id: FORUM, guild_id: GUILD };
    scene.fake.channels.set(post.id, { ...post, thread_metadata: { archived: false, locked: false } });
    scene.fake.say(post.id, person(2), { content: 'in a new post' });
    await until(() => scene.inbox.received.length >= 2 + 230 + 3, 'all of them');
    const ofDirect = scene.inbox.received.filter(({ place }) => place.type === 'dm');
    expect(ofDirect.map(({ text }) => text)).toEqual(['hello', ...many]);
    expect(scene.inbox.texts).toEqual(expect.arrayContaining(['in the channel', 'in the post again', 'in a new post']));
    const fresh = scene.inbox.received.find(({ text }) => text === 'in a new post');
    expect(fresh?.place).toMatchObject({ type: 'thread', chat: FORUM, thread: post.id, scope: GUILD });
    expect(scene.fake.callsOf('GET', new RegExp(`/${dmOf()}/messages`)).length).toBeGreaterThanOrEqual(3);
  });

  test('is not asked for at the very first start, and not from further back than a day', async () => {
    await using scene = await openScene(1);
    scene.fake.say(CHANNEL, person(), { content: 'long ago' });
    await scene.connected();
    await scene.world.say({ text: 'now', where: 'group' });
    await until(() => scene.inbox.texts.length === 1, 'the first');
    await scene.platform.stop();
    expect(scene.fake.callsOf('GET', /\/messages$/)).toEqual([]);
    scene.world.invalidate();
    const key = [...scene.state.keys()].find((each) => scene.state.get(each)?.includes(CHANNEL))!;
    scene.state.set(key, JSON.stringify({ marks: [[CHANNEL, GUILD, '300000000000000000']] }));
    await scene.restart().start(new TestInbox());
    await until(() => scene.fake.callsOf('GET', /\/messages$/).length === 1, 'the question');
    const after = BigInt(scene.fake.callsOf('GET', /\/messages$/)[0]!.query.get('after')!);
    const age = Date.now() - Number((after >> 22n) + 1_420_070_400_000n);
    expect(age).toBeGreaterThan(86_000_000);
    expect(age).toBeLessThan(87_000_000);
  });

  test('longer than a day ago is not asked for, and that is told', async () => {
    await using scene = await openScene(1);
    const threeDaysAgo = Date.now() - 3 * 86_400_000;
    scene.state.set('session', JSON.stringify({ session: null, complete_at: threeDaysAgo }));
    await scene.connected();
    expect(scene.warnings.join()).toContain('a day back only');
  });

  test('is asked for again when the question fails, and given up where the channel is gone', async () => {
    await using scene = await openScene();
    await scene.connected();
    await scene.world.say({ text: 'hello' });
    await scene.world.say({ text: 'hello', person: 1 });
    await until(() => scene.inbox.texts.length === 2, 'both');
    await scene.platform.stop();
    scene.world.invalidate();
    scene.fake.channels.delete(dmOf(1));
    await scene.world.say({ text: 'missed' });
    scene.fake.failNext(`GET /${dmOf()}/messages`, { status: 500 }, 'cut', { status: 503, html: true });
    const inbox = new TestInbox();
    const next = scene.restart();
    await next.start(inbox);
    await until(() => inbox.texts.includes('missed'), 'what was missed');
    await until(() => keptPosition(scene.state) !== null, 'a position');
    expect(next.state.phase).toBe('connected');
    expect([...scene.state.values()].join()).not.toContain(dmOf(1));
  });
});

describe('an inbox that takes nothing', () => {
  test('does not make memory grow: what is more waits at Discord, and buttons are acknowledged all the same', async () => {
    await using scene = await openScene();
    await scene.connected();
    const { messageId } = await scene.platform.send(
      scene.world.place('dm'),
      { text: 'Allow?' },
      AbortSignal.timeout(5000),
    );
    const open = scene.inbox.hold();
    const texts = Array.from({ length: 1600 }, (_, n) => `m${n}`);
    for (const text of texts) await scene.world.say({ text });
    const pressed = scene.world.press(messageId, 'approval:once:1');
    await until(() => [...scene.fake.interactions.values()][0]?.acknowledgedAt !== null, 'the acknowledgement');
    expect(scene.inbox.received).toEqual([]);
    scene.inbox.answer = 'Thanks.';
    open();
    expect(await pressed).toBe('Thanks.');
    await until(() => new Set(scene.inbox.texts).size === texts.length, 'all of them', 30_000);
    expect([...new Set(scene.inbox.texts)]).toEqual(texts);
    // The session was gone on with: that is where the rest came from.
    expect(scene.fake.gateway.beginnings).toContain('resume');
    expect(scene.inbox.presses).toHaveLength(1);
  });
});

describe('what Discord grants', () => {
  test('is asked for and no more: without the intent for contents the bot connects, and says what it cannot hear', async () => {
    await using scene = await openScene();
    const [MEMBERS, CONTENT] = [1 << 1, 1 << 15];
    Object.assign(scene.fake.application, { flags: 0 });
    scene.fake.refusedIntents = MEMBERS | CONTENT;
    await scene.connected();
    const [session] = [...scene.fake.gateway.sessions.values()];
    expect(session!.intents & (MEMBERS | CONTENT)).toBe(0);
    expect(scene.warnings.join()).toContain('Message Content Intent');
  });

  test('includes who comes and goes where the bot has that intent; then the note in the channel is not told as well', async () => {
    await using scene = await openScene();
    await scene.connected();
    const [session] = [...scene.fake.gateway.sessions.values()];
    expect(session!.intents & (1 << 1)).not.toBe(0);
    scene.fake.say(CHANNEL, person(5), { type: 7 });
    scene.fake.gateway.dispatch('GUILD_MEMBER_ADD', { guild_id: GUILD, user: person(5) });
    await until(() => scene.inbox.events.length > 0, 'the event');
    await sleep(30);
    expect(scene.inbox.events).toHaveLength(1);
  });
});

describe('frames that no server sends', () => {
  test.each([
    ['a greeting without a pace', { op: 10, d: null }],
    ['a greeting that wants thousands of heartbeats', { op: 10, d: { heartbeat_interval: 0 } }],
    ['an answer to no heartbeat', { op: 11, d: { odd: true }, s: 'x' }],
    ['a second beginning', { op: 0, t: 'READY', d: null }],
    ['a second beginning of another session', { op: 0, t: 'READY', d: { session_id: 'x', user: null } }],
    ['a position that is no number', { op: 0, t: 'MESSAGE_CREATE', s: 'many', d: {} }],
    ['a position that is none', { op: 0, t: 'MESSAGE_CREATE', s: -1, d: {} }],
    ['an operation that nobody knows', { op: 99, d: {} }],
    ['an operation that is none', { op: null }],
  ])('are passed over: %s', async (_, frame) => {
    await using scene = await openScene();
    await scene.connected();
    scene.fake.gateway.push(frame);
    await scene.world.say({ text: 'sane' });
    await until(() => scene.inbox.texts.includes('sane'), 'the one behind it');
    expect(scene.fake.gateway.beginnings).toEqual(['identify']);
  });

  test('that only say that the session is over begin another', async () => {
    await using scene = await openScene();
    await scene.connected();
    await scene.world.say({ text: 'before' });
    await until(() => scene.inbox.texts.length === 1, 'the first');
    scene.fake.gateway.order(9, null);
    await until(() => scene.fake.gateway.beginnings.length === 2, 'another session');
    await scene.world.say({ text: 'sane' });
    await until(() => scene.inbox.texts.includes('sane'), 'the one behind it');
    expect(scene.fake.gateway.beginnings).toEqual(['identify', 'identify']);
  });

  test.each([
    ['wss://gateway.discord.gg', null, true],
    ['wss://gateway-us-east1-b.discord.gg/', null, true],
    ['ws://gateway.discord.gg', null, false],
    ['wss://gateway.discord.gg.example.org', null, false],
    ['wss://evildiscord.gg', null, false],
    ['https://gateway.discord.gg', null, false],
    ['nonsense', null, false],
    ['ws://127.0.0.1:1', 'http://127.0.0.1:2', true],
    ['http://127.0.0.1:1', 'http://127.0.0.1:2', false],
  ])('name a place to send the token to: %s, with api_root %s: %s', (address, apiRoot, is) => {
    expect(isGatewayAddress(address, apiRoot)).toBe(is);
  });
});
