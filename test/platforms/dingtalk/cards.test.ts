import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ReplyStream } from '../../../src/platforms/platform.ts';
import { never, TestInbox, until } from '../contract/scene.ts';
import { DingtalkWorld, dingtalkAt, GROUP, staffOf } from './world.ts';

const CREATE = '/v1.0/card/instances/createAndDeliver';
const STREAMING = '/v1.0/card/streaming';
const caught = (thrown: unknown): unknown => thrown;

async function openScene({ speed = 100 } = {}) {
  const world = await DingtalkWorld.open({ card: true });
  const at = dingtalkAt(world.fake, { speed });
  const inbox = new TestInbox();
  await at.platform.start(inbox);
  await until(() => at.platform.state.phase === 'connected', 'connected');
  const close = async () => {
    await at.platform.stop();
    await world[Symbol.asyncDispose]();
  };
  return { world, fake: world.fake, ...at, inbox, [Symbol.asyncDispose]: close };
}

type Scene = Awaited<ReturnType<typeof openScene>>;

function begin({ platform, world }: Scene, key = 'trn_1:live', where: 'dm' | 'group' = 'dm'): Promise<ReplyStream> {
  return platform.startStream(world.place(where), { key }, never);
}

describe('a card', () => {
  test.each([
    ['dm', `dtv1.card//IM_ROBOT.${staffOf(0)}`, { imRobotOpenDeliverModel: { spaceType: 'IM_ROBOT' } }],
    ['group', `dtv1.card//IM_GROUP.${GROUP}`, { imGroupOpenDeliverModel: { robotCode: 'robot-1' } }],
  ] as const)('in a %s is made of the template, in its place', async (where, openSpaceId, deliver) => {
    await using scene = await openScene();
    await begin(scene, 'trn_1:live', where);
    expect(scene.fake.callsTo(CREATE)[0]?.body).toMatchObject({
      ...{ cardTemplateId: 'template-1.schema', callbackType: 'STREAM', openSpaceId, userIdType: 1 },
      cardData: { cardParamMap: { content: '' } },
      ...deliver,
    });
  });

  test('shows the whole text each time in a frame of its own, and after its end the text is the reply', async () => {
    await using scene = await openScene();
    const stream = await begin(scene);
    const reply = 'One.\nTwo, [three](https://example.org).\n\n```ts\nconst four = 4;\n```';
    for (const text of ['One.', 'One.\nTwo,', 'One.']) await stream.append(text, never);
    await stream.finish({ text: reply, key: 'dlv_1' }, never);
    const frames = scene.fake.callsTo(STREAMING).map(({ body }) => body);
    expect(frames.map(({ content }) => content)).toEqual(['One.', 'One.\nTwo,', 'One.', reply]);
    expect(new Set(frames.map(({ guid }) => guid)).size).toBe(4);
    expect(frames.map(({ isFinalize }) => isFinalize)).toEqual([false, false, false, true]);
    expect(frames.every(({ isFull, key }) => isFull === true && key === 'content')).toBe(true);
    expect(scene.world.shown()).toMatchObject([{ text: reply, stream: 'finished' }]);
  });

  test('under the same key is the same card, in another process too, and another key makes another card', async () => {
    await using scene = await openScene();
    const first = await begin(scene);
    const { platform } = dingtalkAt(scene.fake);
    const again = await platform.startStream(scene.world.place('dm'), { key: 'trn_1:live' }, never);
    const other = await begin(scene, 'trn_2:live');
    const elsewhere = await begin(scene, 'trn_1:live', 'group');
    expect(again.handle).toBe(first.handle);
    expect(new Set([first, other, elsewhere].map(({ handle }) => handle)).size).toBe(3);
    expect(scene.fake.cards.all.size).toBe(3);
  });

  test('whose making is not answered is made once', async () => {
    await using scene = await openScene();
    scene.fake.failNext(CREATE, 'lost');
    const stream = await begin(scene);
    await stream.finish({ text: 'there' }, never);
    expect(scene.fake.callsTo(CREATE)).toHaveLength(2);
    expect(scene.world.shown()).toMatchObject([{ text: 'there', stream: 'finished' }]);
  });

  test.each(['outTrackId already exists', 'outTrackId 已存在'])(
    'that is there already is gone on with: %s',
    async (message) => {
      await using scene = await openScene();
      const { handle } = await begin(scene);
      scene.fake.failNext(CREATE, { status: 400, body: { code: 'param.error', message } });
      expect((await begin(scene)).handle).toBe(handle);
    },
  );

  test('of a dead process is finished by its handle, and finishing it again changes nothing', async () => {
    await using scene = await openScene();
    const { handle } = await begin(scene);
    await scene.platform.resumeStream(scene.world.place('dm'), handle).append('Half of', never);
    await scene.platform.stop();
    const { platform: next } = dingtalkAt(scene.fake);
    const place = scene.world.place('dm');
    for (let times = 0; times < 2; times += 1) {
      const sent = await next.resumeStream(place, handle).finish({ text: 'Half of it' }, never);
      expect(sent).toEqual({ messageId: handle });
      expect(scene.world.shown()).toMatchObject([{ text: 'Half of it', stream: 'finished' }]);
    }
  });

  test('that is gone cannot be finished, and trying again has no use', async () => {
    await using scene = await openScene();
    const { handle, finish } = await begin(scene);
    scene.fake.cards.all.delete(handle);
    expect(await finish({ text: 'x' }, never).catch(caught)).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
  });

  test.each([
    [
      'is not delivered',
      (scene: Scene): void => {
        scene.fake.cards.undeliverable = true;
      },
    ],
    [
      'is refused',
      (scene: Scene): void => scene.fake.failNext(CREATE, { status: 400, body: { code: 'param.templateUnpublished' } }),
    ],
    [
      'is not permitted',
      (scene: Scene): void => scene.fake.failNext(CREATE, { status: 403, body: { code: 'Forbidden.AccessDenied.X' } }),
    ],
  ] as const)('that %s is none: the reply is a message', async (_, spoil) => {
    await using scene = await openScene();
    spoil(scene);
    const failure = await begin(scene).catch(caught);
    expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
    await scene.platform.send(scene.world.place('dm'), { text: 'the reply' }, never);
    expect(scene.world.shown().filter(({ text }) => text !== '')).toMatchObject([{ text: 'the reply' }]);
  });

  test('is left alone for as long as the server asks', async () => {
    await using scene = await openScene({ speed: 1 });
    const stream = await begin(scene);
    const limit = { status: 403, body: { code: 'Forbidden.AccessDenied.QpsLimitForAppkeyAndApi', message: 'qps' } };
    scene.fake.failNext(STREAMING, limit);
    expect(await stream.append('One', never).catch(caught)).toMatchObject({ kind: 'rate_limited', retryAfterMs: 1000 });
    expect(await stream.append('One, two', never).catch(caught)).toMatchObject({ kind: 'rate_limited' });
    expect(scene.fake.callsTo(STREAMING)).toHaveLength(1);
    await sleep(1050);
    await stream.finish({ text: 'One, two' }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'One, two', stream: 'finished' }]);
  });

  test('takes no reply that is longer than it holds', async () => {
    await using scene = await openScene();
    const stream = await begin(scene);
    expect(await stream.finish({ text: 'x'.repeat(18_001) }, never).catch(caught)).toMatchObject({ kind: 'too_long' });
  });

  test('is not for people without a staff id', async () => {
    await using scene = await openScene();
    const place = { type: 'dm', chat: '$:LWCP_v1:$0' } as const;
    expect(scene.platform.abilitiesAt(place)).toMatchObject({ streams: false, buttons: false });
    const failure = await scene.platform.startStream(place, { key: 'k' }, never).catch(caught);
    expect(failure).toMatchObject({ retryAfterMs: null });
    expect(scene.fake.callsTo(CREATE)).toEqual([]);
  });
});

describe('a question with buttons', () => {
  const buttons = [
    [{ label: 'Allow', data: 'approval:once:apr_1' }],
    [{ label: 'Refuse', data: 'approval:deny:apr_1' }],
  ];

  test('is a card, and the same question again is the same card', async () => {
    await using scene = await openScene();
    const question = { text: 'Allow this?', buttons, key: 'dlv_q' };
    const first = await scene.platform.send(scene.world.place('dm'), question, never);
    const again = await scene.platform.send(scene.world.place('dm'), question, never);
    expect(again).toEqual(first);
    expect(scene.world.shown()).toMatchObject([
      { text: 'Allow this?', buttons: ['Allow', 'Refuse'], stream: 'finished' },
    ]);
  });

  test('that no card takes is asked in words, once', async () => {
    await using scene = await openScene();
    scene.fake.cards.undeliverable = true;
    await scene.platform.send(scene.world.place('dm'), { text: 'Allow this?\n/approve or /deny', buttons }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'Allow this?\n/approve or /deny', buttons: [] }]);
    expect(scene.warnings.join()).toContain('without its buttons');
  });

  test('shows the answer in a group to who pressed, and the buttons to the others', async () => {
    await using scene = await openScene();
    const { messageId } = await scene.platform.send(scene.world.place('group'), { text: 'Allow?', buttons }, never);
    scene.inbox.answer = 'Only admins may.';
    expect(await scene.world.press(messageId, 'approval:once:apr_1', 3)).toBe('Only admins may.');
    expect(scene.inbox.presses).toMatchObject([{ place: { type: 'group', chat: GROUP }, from: { id: staffOf(3) } }]);
    expect(scene.world.shown()).toMatchObject([{ text: 'Allow?', buttons: ['Allow', 'Refuse'] }]);
    scene.inbox.answer = 'Allowed.';
    expect(await scene.world.press(messageId, 'approval:once:apr_1', 0)).toBe('Allowed.');
  });

  test('is answered in time when the inbox is slow, and what it says comes later', async () => {
    await using scene = await openScene();
    const { messageId } = await scene.platform.send(scene.world.place('dm'), { text: 'Allow?', buttons }, never);
    const open = scene.inbox.hold();
    scene.inbox.answer = 'Allowed.';
    expect(await scene.world.press(messageId, 'approval:once:apr_1')).toBeNull();
    open();
    await until(() => scene.world.settledText(messageId) === 'Allowed.', 'the late answer');
    expect(scene.inbox.presses).toHaveLength(1);
    expect(scene.world.shown()).toMatchObject([{ text: 'Allow?' }]);
  });

  test('whose press could not be taken is brought again', async () => {
    await using scene = await openScene();
    scene.fake.stream.againMs = 30;
    const { messageId } = await scene.platform.send(scene.world.place('dm'), { text: 'Allow?', buttons }, never);
    const press = scene.inbox.press.bind(scene.inbox);
    let refusals = 2;
    scene.inbox.press = async (pressed) => {
      refusals -= 1;
      if (refusals >= 0) throw new RangeError('not now');
      return press(pressed);
    };
    scene.inbox.answer = 'Allowed.';
    expect(await scene.world.press(messageId, 'approval:deny:apr_1')).toBe('Allowed.');
    expect(scene.inbox.presses).toHaveLength(1);
  });

  test('does not wait for what is said in the same chat', async () => {
    await using scene = await openScene();
    const { messageId } = await scene.platform.send(scene.world.place('dm'), { text: 'Allow?', buttons }, never);
    const { promise: slow, resolve: finish } = Promise.withResolvers<void>();
    scene.inbox.receive = () => slow;
    await scene.world.say({ text: 'something that takes long' });
    scene.inbox.answer = 'Allowed.';
    expect(await scene.world.press(messageId, 'approval:once:apr_1')).toBe('Allowed.');
    finish();
  });

  test('takes no data that is longer than a button holds', async () => {
    await using scene = await openScene();
    const long = [[{ label: 'Allow', data: 'x'.repeat(65) }]];
    await scene.platform.send(scene.world.place('dm'), { text: 'Allow?', buttons: long }, never);
    expect(scene.world.shown()).toMatchObject([{ text: 'Allow?', buttons: [] }]);
  });
});
