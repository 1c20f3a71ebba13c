import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Backlog } from '../../../src/platforms/telegram/backlog.ts';
import { parseUpdate } from '../../../src/platforms/telegram/parse.ts';
import { laneOf } from '../../../src/platforms/telegram/reception.ts';
import { BotApiFake } from '../../fakes/bot-api.ts';
import { patience } from '../../support/patience.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { telegramAt } from './world.ts';

const { signal } = new AbortController();

async function openScene() {
  const fake = await BotApiFake.start();
  const { platform, warnings } = telegramAt(fake);
  const inbox = new TestInbox();
  const close = async () => {
    await platform.stop();
    await fake.close();
  };
  return { fake, platform, warnings, inbox, [Symbol.asyncDispose]: close };
}

describe('asking for updates', () => {
  test('takes a webhook away first, and keeps what waits', async () => {
    await using scene = await openScene();
    scene.fake.webhook = { url: 'https://elsewhere.example', secret: 'x' };
    scene.fake.say({ text: 'waiting' });
    await scene.platform.start(scene.inbox);
    await until(() => scene.inbox.texts.length === 1, 'what waited');
    expect(scene.fake.callsOf('deleteWebhook')[0]?.payload).toEqual({ drop_pending_updates: false });
  });

  test('asks only for what it knows', async () => {
    await using scene = await openScene();
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.isPolled, 'a question');
    const { allowed_updates } = scene.fake.callsOf('getUpdates').at(-1)?.payload ?? {};
    expect(allowed_updates).toEqual([
      'message',
      'edited_message',
      'channel_post',
      'edited_channel_post',
      'callback_query',
      ...['my_chat_member', 'chat_member', 'message_reaction'],
    ]);
  });

  test('hands over chats beside each other, and forgets only up to the first that is not taken', async () => {
    await using scene = await openScene();
    scene.fake.say({ text: 'a1', chat: 1 });
    const stuck = scene.fake.say({ text: 'b1', chat: 2 });
    scene.fake.say({ text: 'a2', chat: 1 });
    scene.fake.say({ text: 'b2', chat: 2 });
    let refusing = true;
    const receive = scene.inbox.receive.bind(scene.inbox);
    scene.inbox.receive = async (message) => {
      if (refusing && message.place.chat === '2') throw new RangeError('not now');
      await receive(message);
    };
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.callsOf('getUpdates').length > 3, 'some questions');
    expect(scene.inbox.texts).toEqual(['a1', 'a2']);
    expect(scene.fake.pending[0]).toMatchObject({ message: { message_id: stuck.message_id } });
    refusing = false;
    await until(() => scene.inbox.texts.length === 4, 'all');
    expect(scene.inbox.texts).toEqual(['a1', 'a2', 'b1', 'b2']);
    await until(() => scene.fake.pending.length === 0, 'nothing kept');
  });

  test('does not hurry when the inbox cannot take anything', async () => {
    await using scene = await openScene();
    scene.inbox.refuseNext(1_000_000);
    scene.fake.say({ text: 'x' });
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.callsOf('getUpdates').length >= 6, 'some questions');
    const calls = scene.fake.callsOf('getUpdates');
    // Half of 1, 2, 4, 8 and 16 seconds at least, a hundred times as fast.
    expect(calls[5]!.at - calls[0]!.at).toBeGreaterThan(150);
    expect(scene.platform.state.phase).toBe('connected');
  });

  test('skips and acknowledges what it does not know, also without a number, and does not spin', async () => {
    await using scene = await openScene();
    scene.fake.push({ my_chat_member: {} });
    scene.fake.push({ message: 'nonsense' });
    scene.fake.push({ update_id: 'odd', message: {} });
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.pending.length <= 1, 'the rest forgotten');
    await sleep(100);
    expect(scene.fake.callsOf('getUpdates').length).toBeLessThan(20);
  });

  test('takes numbers that start again below the last', async () => {
    const taken: string[] = [];
    const parse = (update: unknown) => parseUpdate(update, { id: 777, username: 'moirai_bot' });
    const backlog = new Backlog({ parse, take: async (parsed) => void taken.push(laneOf(parsed)) });
    await using fake = await BotApiFake.start();
    const updateOf = (update_id: number, chat: number) => ({ update_id, message: fake.message({ text: 'x', chat }) });
    await backlog.take([updateOf(900_000, 1)], signal);
    expect(backlog.offset).toBe(900_001);
    backlog.confirmed(900_001);
    expect(backlog.offset).toBeNull();
    await backlog.take([updateOf(5, 2)], signal);
    expect(backlog.offset).toBe(6);
    expect(taken).toEqual(['1', '2']);
  });

  test('takes nothing more of a batch when it is stopped', async () => {
    await using scene = await openScene();
    const open = scene.inbox.hold();
    for (const text of ['one', 'two', 'three']) scene.fake.say({ text });
    await scene.platform.start(scene.inbox);
    await until(() => scene.inbox.tried.length === 1, 'the try');
    const stopped = scene.platform.stop();
    open();
    await stopped;
    expect(scene.inbox.texts).toEqual(['one']);
    expect(scene.fake.pending).toHaveLength(2);
  });

  test('stops at once while a question is open, and tells the server what it has taken', async () => {
    await using scene = await openScene();
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.isPolled, 'a question');
    const open = scene.inbox.hold();
    scene.fake.say({ text: 'last' });
    await until(() => scene.inbox.tried.length === 1, 'the try');
    const stopped = scene.platform.stop();
    open();
    await stopped;
    expect(scene.fake.pending).toEqual([]);
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.isPolled, 'a question');
    const started = performance.now();
    await scene.platform.stop();
    expect(performance.now() - started).toBeLessThan(patience(500));
  });
});

describe('trouble with the server', () => {
  test.each([
    ['502 as HTML', { html: 502 }],
    ['500', { code: 500, description: 'Internal Server Error' }],
    ['a cut connection', 'cut'],
    ['429', { code: 429, description: 'Too Many Requests: retry after 3', parameters: { retry_after: 3 } }],
  ] as const)('%s passes: it is degraded, then connected, and nothing is lost or doubled', async (_, fault) => {
    await using scene = await openScene();
    const phases: string[] = [];
    scene.inbox.changed = () => phases.push(scene.platform.state.phase);
    scene.fake.failNext('getMe', fault);
    scene.fake.failNext('deleteWebhook', fault);
    scene.fake.failNext('getUpdates', fault, fault, fault);
    const texts = ['one', 'two', 'three'];
    for (const text of texts) scene.fake.say({ text });
    await scene.platform.start(scene.inbox);
    await until(() => scene.inbox.texts.length === 3, 'all');
    await until(() => scene.fake.pending.length === 0, 'all forgotten');
    expect(scene.inbox.texts).toEqual(texts);
    expect([...new Set(phases)]).toEqual(['connecting', 'degraded', 'connected']);
    expect(scene.platform.state.problem).toBeNull();
  });

  test('the patience that was asked for is kept', async () => {
    await using scene = await openScene();
    const patient = { code: 429, description: 'Too Many Requests', parameters: { retry_after: 30 } };
    scene.fake.failNext('getUpdates', patient);
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.callsOf('getUpdates').length >= 2, 'the second question');
    const [first, second] = scene.fake.callsOf('getUpdates');
    // A hundred times as fast.
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(295);
  });

  test.each([
    [401, 'Unauthorized'],
    [404, 'Not Found'],
  ])('%i: a token nobody knows is said so, once, and not tried again', async (code, description) => {
    await using scene = await openScene();
    scene.fake.failNext('getMe', { code, description });
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'failed', 'failed');
    await sleep(50);
    expect(scene.platform.state.problem).toContain('does not know the token');
    expect(scene.fake.calls).toHaveLength(1);
    expect(scene.warnings).toHaveLength(1);
  });

  test('a token that is revoked while we poll is not tried again', async () => {
    await using scene = await openScene();
    scene.fake.failNext('getUpdates', { code: 401, description: 'Unauthorized' });
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'failed', 'failed');
    expect(scene.fake.callsOf('getUpdates')).toHaveLength(1);
  });

  test('somebody else who polls makes us stand by, and when he leaves we go on', async () => {
    await using scene = await openScene();
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.isPolled, 'a question');
    const conflict = {
      code: 409,
      description: 'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running',
    };
    scene.fake.failNext('getUpdates', conflict, conflict);
    scene.fake.cut();
    await until(() => scene.platform.state.phase === 'standby', 'standby');
    expect(scene.platform.state.problem).toContain('terminated by other getUpdates request');
    scene.fake.say({ text: 'meanwhile' });
    await until(() => scene.inbox.texts.length === 1, 'what came meanwhile');
    expect(scene.platform.state.phase).toBe('connected');
  });

  test('two with one token lose nothing and take nothing twice', async () => {
    await using scene = await openScene();
    const other = telegramAt(scene.fake);
    await scene.platform.start(scene.inbox);
    await other.platform.start(scene.inbox);
    for (let index = 0; index < 30; index += 1) {
      scene.fake.say({ text: `m${index}`, chat: 1 + (index % 3) });
      await sleep(5);
    }
    await until(() => new Set(scene.inbox.received.map(({ id }) => id)).size === 30, 'all');
    await other.platform.stop();
  });

  test('a webhook that somebody sets is taken away again', async () => {
    await using scene = await openScene();
    await scene.platform.start(scene.inbox);
    await until(() => scene.fake.isPolled, 'a question');
    scene.fake.webhook = { url: 'https://elsewhere.example', secret: 'x' };
    scene.fake.cut();
    scene.fake.say({ text: 'still ours' });
    await until(() => scene.inbox.texts.length === 1, 'the message');
  });

  test('no word of it contains the token', async () => {
    const fake = await BotApiFake.start();
    const { platform, warnings } = telegramAt(fake);
    await fake.close();
    await platform.start(new TestInbox());
    await until(() => platform.state.phase === 'degraded', 'degraded');
    const place = { type: 'dm', chat: '1' } as const;
    const failure = await platform.send(place, { text: 'x' }, signal).catch((thrown) => thrown);
    await platform.stop();
    const said = JSON.stringify([
      warnings,
      platform.state,
      failure,
      failure.message,
      failure.stack,
      failure.cause ?? null,
    ]);
    expect(said).toContain('ECONNREFUSED');
    expect(said).not.toContain('secret-of-the-bot');
  });

  test('a process that is killed anywhere finds everything it had not acknowledged, in order', async () => {
    const fake = await BotApiFake.start();
    const seen: { id: string; chat: string; text: string }[] = [];
    for (let index = 0; index < 200; index += 1) fake.say({ text: `${index}`, chat: 1 + (index % 20) });
    for (let run = 0; run < 4; run += 1) {
      const { platform } = telegramAt(fake);
      const inbox = new TestInbox();
      let left = run === 3 ? Number.POSITIVE_INFINITY : 37;
      inbox.receive = async ({ id, text, place: { chat } }) => {
        // What is killed never answers.
        if (left <= 0) return await new Promise(() => undefined);
        left -= 1;
        seen.push({ id, chat, text });
      };
      await platform.start(inbox);
      await until(() => left <= 0 || (run === 3 && fake.pending.length === 0), 'the end of a life');
      fake.cut();
      if (run === 3) await platform.stop();
    }
    expect(new Set(seen.map(({ id }) => id)).size).toBe(200);
    for (const [, ofChat] of Map.groupBy(seen, ({ chat }) => chat)) {
      const fresh = ofChat.filter(({ id }, at) => ofChat.findIndex((other) => other.id === id) === at);
      const numbers = fresh.map(({ text }) => Number(text));
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    }
    await fake.close();
  });
});
