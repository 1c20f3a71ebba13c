import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Addresses } from '../../../src/platforms/dingtalk/addresses.ts';
import { patience } from '../../support/patience.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { DingtalkWorld, dingtalkAt, GROUP, MESSAGES, staffOf } from './world.ts';

async function openScene({ card = true, speed = 100, start = true } = {}) {
  const world = await DingtalkWorld.open({ card });
  const { platform, warnings } = dingtalkAt(world.fake, { card, speed });
  const inbox = new TestInbox();
  if (start) {
    await platform.start(inbox);
    await until(() => platform.state.phase === 'connected', 'connected');
  }
  const close = async () => {
    await platform.stop();
    await world[Symbol.asyncDispose]();
  };
  return { world, fake: world.fake, platform, warnings, inbox, [Symbol.asyncDispose]: close };
}

describe('the connection', () => {
  test('is opened for messages, presses and events', async () => {
    await using scene = await openScene();
    const [opened] = scene.fake.callsTo('/v1.0/gateway/connections/open');
    expect(opened?.body.subscriptions).toEqual([
      { type: 'CALLBACK', topic: MESSAGES },
      { type: 'CALLBACK', topic: '/v1.0/card/instances/callback' },
      { type: 'EVENT', topic: '*' },
    ]);
  });

  test('answers a ping with what it holds', async () => {
    await using scene = await openScene();
    const messageId = scene.fake.stream.system('ping', { opaque: '0x1' });
    await until(() => scene.fake.stream.answers.some((answer) => answer.messageId === messageId), 'the answer');
    const answer = scene.fake.stream.answers.find((each) => each.messageId === messageId);
    expect(answer).toMatchObject({ code: 200, raw: '{"opaque":"0x1"}', headers: { topic: 'ping' } });
  });

  test('is followed by the next one before it ends when the server asks for that, and nothing is lost', async () => {
    await using scene = await openScene();
    const phases: string[] = [];
    scene.inbox.changed = () => phases.push(scene.platform.state.phase);
    const overlap: number[] = [];
    scene.fake.stream.onOpen = () => overlap.push(scene.fake.stream.connections);
    const open = scene.inbox.hold();
    await scene.world.say({ text: 'before' });
    await until(() => scene.inbox.tried.length === 1, 'the try');
    scene.fake.stream.disconnect();
    await until(() => scene.fake.stream.opened === 2, 'the next connection');
    await scene.world.say({ text: 'behind', person: 1 });
    open();
    await until(() => scene.world.unacknowledged() === 0, 'both acknowledged');
    expect(overlap).toEqual([2]);
    expect([...scene.inbox.texts].sort()).toEqual(['before', 'behind']);
    await until(() => scene.fake.stream.connections === 1, 'the old one closed');
    expect(phases).toEqual([]);
  });

  test('is not opened in a hurry when the server ends each at once', async () => {
    await using scene = await openScene({ start: false, speed: 20 });
    scene.fake.stream.onOpen = () => setTimeout(() => scene.fake.stream.disconnect(), 1);
    const started = performance.now();
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.stream.opened >= 5, 'five connections');
    // Half of 1, 2, 4 and 8 seconds at least, twenty times as fast.
    expect(performance.now() - started).toBeGreaterThan(350);
  });

  test('that the server does not answer on any more is given up, and opened again', async () => {
    await using scene = await openScene({ speed: 400 });
    scene.fake.stream.freeze();
    await until(() => scene.fake.stream.opened >= 2, 'the next connection');
    scene.fake.stream.thaw();
    await scene.world.say({ text: 'heard' });
    await until(() => scene.inbox.texts.includes('heard'), 'the message');
  });

  test('is only opened where DingTalk is', async () => {
    await using scene = await openScene({ start: false });
    const endpoint = 'wss://connect.example.org/connect';
    scene.fake.failNext('/v1.0/gateway/connections/open', { status: 200, body: { endpoint, ticket: 'ticket-1' } });
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'degraded', 'degraded');
    expect(scene.platform.state.problem).toContain('not at DingTalk');
    await until(() => scene.platform.state.phase === 'connected', 'the next try');
  });

  test('that is refused because the app is not known has failed, and says what to look at', async () => {
    await using scene = await openScene({ start: false });
    scene.fake.revoked = true;
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'failed', 'failed');
    expect(scene.platform.state.problem).toContain('client_id and client_secret');
    await sleep(50);
    expect(scene.fake.callsTo('/v1.0/gateway/connections/open')).toHaveLength(1);
  });

  test.each([
    ['502 as HTML', { status: 502 }],
    ['a cut connection', 'cut'],
    ['a limit of calls', { status: 403, body: { code: 'Forbidden.AccessDenied.QpsLimitForApi', message: 'qps' } }],
    ['a ticket that is not taken', { status: 200, body: { endpoint: 'ws://127.0.0.1:1/connect', ticket: 'x' } }],
  ] as const)('%s passes: it is degraded, then connected', async (_, fault) => {
    await using scene = await openScene({ start: false });
    const phases: string[] = [];
    scene.inbox.changed = () => phases.push(scene.platform.state.phase);
    scene.fake.failNext('/v1.0/gateway/connections/open', fault);
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'connected', 'connected');
    expect(phases).toEqual(['connecting', 'degraded', 'connected']);
  });

  test('ends at once when it is stopped while it is being opened', async () => {
    await using scene = await openScene({ start: false, speed: 1 });
    scene.fake.failNext('/v1.0/gateway/connections/open', { status: 503 });
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'degraded', 'degraded');
    const started = performance.now();
    await scene.platform.stop();
    expect(performance.now() - started).toBeLessThan(patience(400));
  });
});

describe('what comes', () => {
  test('in several chats at once does not wait for a chat whose message is not taken', async () => {
    await using scene = await openScene();
    let refusing = true;
    const receive = scene.inbox.receive.bind(scene.inbox);
    scene.inbox.receive = async (message) => {
      if (refusing && message.place.chat === staffOf(1)) throw new RangeError('not now');
      await receive(message);
    };
    for (const text of ['a1', 'a2']) await scene.world.say({ text, person: 1 });
    for (const text of ['b1', 'b2']) await scene.world.say({ text, person: 2 });
    await until(() => scene.inbox.texts.length === 2, 'the other chat');
    expect(scene.inbox.texts).toEqual(['b1', 'b2']);
    await until(() => scene.world.unacknowledged() === 2, 'acknowledged');
    refusing = false;
    await until(() => scene.inbox.texts.length === 4, 'all');
    expect(scene.inbox.texts).toEqual(['b1', 'b2', 'a1', 'a2']);
    await until(() => scene.world.unacknowledged() === 0, 'acknowledged');
  });

  test('again while the inbox still has it is handed over once, and acknowledged each time', async () => {
    await using scene = await openScene();
    scene.fake.stream.againMs = 30;
    const open = scene.inbox.hold();
    await scene.world.say({ text: 'slow' });
    await until(() => scene.fake.stream.times(0) >= 4, 'repetitions');
    // One that is on its way when the inbox has it would rightly be handed over again: all of them have arrived here.
    scene.fake.stream.againMs = 60_000;
    const ping = scene.fake.stream.system('ping', { opaque: '0x1' });
    await until(() => scene.fake.stream.answers.some(({ messageId }) => messageId === ping), 'all of them');
    open();
    await until(() => scene.fake.stream.answers.filter(({ data }) => 'response' in data).length >= 4, 'the answers');
    expect(scene.world.unacknowledged()).toBe(0);
    expect(scene.inbox.tried).toHaveLength(1);
  });

  test('and is no message for us is acknowledged', async () => {
    await using scene = await openScene();
    await scene.fake.stream.keep('CALLBACK', MESSAGES, { ...scene.world.message(), msgtype: 'chatRecord' });
    await scene.fake.stream.keep('CALLBACK', '/v1.0/graph/api/invoke', {});
    const answer = await scene.fake.stream.keep('EVENT', '*', { userId: ['x'] }, { eventType: 'user_add_org' });
    expect(answer).toMatchObject({ status: 'SUCCESS' });
    expect(scene.inbox.tried).toEqual([]);
  });

  test('more than the inbox takes is left in the network, and nothing of it is lost', async () => {
    await using scene = await openScene();
    scene.fake.stream.againMs = 60_000;
    const open = scene.inbox.hold();
    const data = () => ({ ...scene.world.message('dm', 3), msgtype: 'text', text: { content: 'one of many' } });
    for (let index = 0; index < 1200; index += 1) void scene.fake.stream.keep('CALLBACK', MESSAGES, data());
    await until(() => scene.inbox.tried.length === 1, 'the first');
    await sleep(100);
    open();
    await until(() => scene.inbox.received.length === 1200, 'all', 30_000);
    expect(new Set(scene.inbox.received.map(({ id }) => id)).size).toBe(1200);
    await until(() => scene.world.unacknowledged() === 0, 'all acknowledged');
  });

  test('is an event that cannot be taken now: DingTalk is asked to bring it later', async () => {
    await using scene = await openScene();
    scene.fake.stream.againMs = 30;
    let refusals = 2;
    const happened = scene.inbox.happened.bind(scene.inbox);
    scene.inbox.happened = async (event) => {
      refusals -= 1;
      if (refusals >= 0) throw new RangeError('not now');
      await happened(event);
    };
    await scene.world.happen('removed');
    await until(() => scene.inbox.events.length === 1, 'the event');
    await until(() => scene.world.unacknowledged() === 0, 'the acknowledgement');
    const said = scene.fake.stream.answers.map(({ data }) => data.status).filter((status) => status !== undefined);
    expect(said).toEqual(['LATER', 'LATER', 'SUCCESS']);
    expect(scene.inbox.events[0]).toMatchObject({ kind: 'removed', place: { chat: GROUP } });
  });
});

describe('addresses that come from outside', () => {
  const own = new Addresses(null);
  const other = new Addresses('http://127.0.0.1:8080');

  test.each([
    'https://oapi.dingtalk.com/robot/sendBySession?session=x',
    'https://api.dingtalk.com/x',
    'http://oapi.dingtalk.com/robot/sendBySession',
  ])('may be DingTalk: %s', (address) => expect(own.webhook(address)).toBe(address.replace('http:', 'https:')));

  test.each([
    'https://oapi.dingtalk.com.example.org/x',
    'https://dingtalk.com@example.org/x',
    'https://user:password@oapi.dingtalk.com/x',
    'https://oapi.dingtalk.com:8443/x',
    'https://evildingtalk.com/x',
    'https://127.0.0.1/x',
    'https://[::1]/x',
    'http://169.254.169.254/latest/meta-data',
    'file:///etc/passwd',
    'wss://oapi.dingtalk.com/x',
    'no address',
    '',
  ])('may be none of DingTalk: %s', (address) => expect(own.webhook(address)).toBeNull());

  test('are files in its storage, and not in the inner network of its storage', () => {
    const file = 'https://bucket.oss-cn-hangzhou.aliyuncs.com/a/b.png?Signature=x%2By';
    expect(own.file(file)).toBe(file);
    expect(own.file('https://down.dingtalk.com/media/x.png')).not.toBeNull();
    expect(own.file('https://bucket.oss-cn-hangzhou-internal.aliyuncs.com/a')).toBeNull();
    expect(own.file('https://aliyuncs.com.example.org/a')).toBeNull();
    expect(own.file('http://10.0.0.1/a')).toBeNull();
    expect(own.webhook(file)).toBeNull();
  });

  test('are sockets with encryption', () => {
    const socket = 'wss://wss-open-connection.dingtalk.com:443/connect';
    expect(own.socket(socket)?.href).toBe('wss://wss-open-connection.dingtalk.com/connect');
    expect(own.socket('ws://wss-open-connection.dingtalk.com/connect')).toBeNull();
  });

  test('are all at the other root where there is one, with the same paths', () => {
    expect(other.webhook('https://oapi.dingtalk.com/robot/sendBySession?session=x')).toBe(
      'http://127.0.0.1:8080/robot/sendBySession?session=x',
    );
    expect(other.socket('wss://wss-open-connection.dingtalk.com:443/connect')?.href).toBe(
      'ws://127.0.0.1:8080/connect',
    );
    expect(other.file('https://bucket.oss-cn-hangzhou.aliyuncs.com/a')).toBe('http://127.0.0.1:8080/a');
    expect(other.webhook('http://127.0.0.1:8080/robot/sendBySession')).not.toBeNull();
    expect(other.webhook('http://localhost:8080/robot/sendBySession')).not.toBeNull();
    expect(other.socket('ws://localhost:9090/connect')?.href).toBe('ws://localhost:9090/connect');
    expect(other.webhook('http://127.0.0.1:9090/admin')).toBeNull();
    expect(other.webhook('http://localhost:9090/admin')).toBeNull();
    expect(other.webhook('http://127.0.0.2:8080/x')).toBeNull();
  });
});
