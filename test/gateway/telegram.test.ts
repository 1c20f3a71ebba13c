import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import { freePort } from '../support/free-port.ts';
import { someOf } from '../support/full-run.ts';
import { share } from '../support/share.ts';
import { TelegramScene } from './telegram-scene.ts';

/** The gateway is killed in every third one. */
const ROUNDS = share(4, 10);
let scene: TelegramScene;

afterEach(() => scene.close());

describe('conversations on Telegram', () => {
  test(`${ROUNDS} messages in each of 20 chats, the gateway killed in between: each answered, in order`, {
    timeout: 120_000,
  }, async () => {
    const chats = Array.from({ length: 20 }, (_, i) => 1000 + i);
    scene = await TelegramScene.open();
    const { bot } = scene;
    const gateway = scene.gateway({}, { allow: ['*'] });
    await gateway.start();
    const answered = (chat: number): string[] =>
      scene.textsIn(chat).flatMap((text) => [...text.matchAll(/m\d+/g)].map(([m]) => m));
    for (let n = 1; n <= ROUNDS; n++) {
      for (const chat of chats) bot.say({ text: `m${n}`, chat, from: chat });
      const some = () => chats.filter((chat) => answered(chat).includes(`m${n}`)).length >= 5;
      await until('some are answered, and others are not', some, 20_000);
      if (n % 3 !== 0) continue;
      await gateway.end('SIGKILL');
      await gateway.start();
    }
    const all = Array.from({ length: ROUNDS }, (_, i) => `m${i + 1}`);
    await until('all are answered', () => chats.every((chat) => answered(chat).includes(`m${ROUNDS}`)), 60_000);
    await until('nothing is left at the server', () => bot.pending.length === 0);
    for (const chat of chats) {
      // What was being sent when the gateway died may have arrived: it comes again and says so.
      const marked = scene
        .textsIn(chat)
        .filter((text) => text.includes('repetition'))
        .flatMap((text) => text.match(/m\d+/g) ?? []);
      const found = answered(chat);
      expect([chat, [...new Set(found)]]).toEqual([chat, all]);
      expect(found.filter((m, i) => found.indexOf(m) !== i).every((m) => marked.includes(m))).toBe(true);
    }
    const { data } = await gateway.get<{ data: { message_count: number }[] }>('/v1/sessions?platform=telegram');
    expect(data).toHaveLength(20);
  });

  const faults = [
    ['a rate limit', 'sendMessage', { code: 429, description: 'Too Many Requests', parameters: { retry_after: 1 } }],
    ['a bad gateway', 'sendMessage', { html: 502 }],
    ['a bad gateway while polling', 'getUpdates', { html: 502 }],
    ['another poller', 'getUpdates', { code: 409, description: 'Conflict: terminated by other getUpdates request' }],
    ['a cut connection', 'getUpdates', 'cut'],
  ] as const;
  test.each(someOf(faults, ([name]) => name === 'a rate limit' || name === 'a cut connection'))(
    '%s: nothing is lost or doubled',
    async (_, method, fault) => {
      scene = await TelegramScene.open();
      const { bot } = scene;
      const gateway = scene.gateway();
      await gateway.start();
      await until('it polls', () => bot.isPolled);
      if (method === 'getUpdates') bot.cut();
      bot.failNext(method, fault);
      bot.say({ text: 'one' });
      expect(await scene.heardIn(42, 1, 20_000)).toEqual(['did: one']);
      bot.say({ text: 'two' });
      expect(await scene.heardIn(42, 2, 20_000)).toEqual(['did: one', 'did: two']);
    },
  );

  test('a session goes idle with nobody writing; the next message starts another one', async () => {
    scene = await TelegramScene.open();
    const { bot } = scene;
    const gateway = scene.gateway({ sessions: { reset: { idle: '2s', notify: 'at_once' } } });
    await gateway.start();
    bot.say({ text: 'one' });
    await scene.heardIn(42, 1);
    await until('it ended', async () => (await gateway.events('session:end')).length === 1, 10_000);
    expect(await gateway.events('session:end')).toMatchObject([{ reason: 'idle_expiry', trigger: 'watcher' }]);
    const [, notice] = await scene.heardIn(42, 2);
    expect(notice).toMatch(/ended after 2s without a message.*\/resume/);
    bot.say({ text: 'two' });
    expect((await scene.heardIn(42, 3)).at(-1)).toBe('did: two');
    expect(await gateway.events('session:start')).toHaveLength(2);
  });

  test('a group that becomes a supergroup goes on in its session, and its replies follow it', async () => {
    scene = await TelegramScene.open();
    const { bot } = scene;
    const gateway = scene.gateway({}, { allow: ['-200'], require_mention: false });
    await gateway.start();
    const open = async () => {
      const { data } = await gateway.get<{ data: { id: string; key: string }[] }>('/v1/sessions?state=open');
      return data.map(({ id, key }) => ({ id, key }));
    };
    bot.say({ text: 'one', chat: -200, type: 'group' });
    await scene.heardIn(-200, 1);
    const before = await open();
    expect(before).toMatchObject([{ key: 'agent:main:telegram:group:-200:42' }]);
    bot.migrate(-200, -100_200);
    bot.say({ text: 'two', chat: -100_200, type: 'supergroup' });
    expect(await scene.heardIn(-100_200, 1)).toEqual(['did: two']);
    expect(await open()).toEqual(before);
    await gateway.end('SIGKILL');
    await gateway.start();
    bot.say({ text: 'three', chat: -100_200, type: 'supergroup' });
    expect(await scene.heardIn(-100_200, 2)).toEqual(['did: two', 'did: three']);
    expect(await open()).toEqual(before);
  });

  test('what is written in a hurry is one message, an album too', async () => {
    scene = await TelegramScene.open();
    const { bot, model } = scene;
    const gateway = scene.gateway();
    await gateway.start();
    bot.say({ text: 'one' });
    bot.say({ text: 'two' });
    await scene.heardIn(42, 1);
    const { file_id, file_unique_id, file_size } = bot.keepFile(Buffer.from('pixels'));
    const photo = [{ file_id, file_unique_id, file_size, width: 1, height: 1 }];
    bot.say({ chat: 43, from: 43, fields: { photo, media_group_id: 'g1', caption: 'look' } });
    bot.say({ chat: 43, from: 43, fields: { photo, media_group_id: 'g1' } });
    await scene.heardIn(43, 1);
    const asked = model.requests.map(({ body }) => String(body.messages.at(-1)?.content));
    expect(asked).toHaveLength(2);
    expect(asked[0]).toBe('one\ntwo');
    expect(asked[1]).toMatch(/^\[An image.*saved as received\/telegram-image-\w+.*\]\nlook\n\[An image.*saved as/);
  });

  test('by webhook: taken once it is durable, and only from Telegram', { timeout: 60_000 }, async () => {
    scene = await TelegramScene.open();
    const { bot } = scene;
    const port = await freePort();
    const webhook_url = `http://127.0.0.1:${port}/platforms/telegram`;
    const gateway = scene.gateway({ gateway: { port } }, { mode: 'webhook', webhook_url, webhook_secret: 'feather' });
    await gateway.start();
    await until('Telegram knows where', () => bot.webhook !== null);
    expect(bot.webhook).toEqual({ url: webhook_url, secret: 'feather' });
    bot.say({ text: 'one' });
    expect(await bot.deliver()).toBe(200);
    expect(await scene.heardIn(42, 1)).toEqual(['did: one']);
    const forged = await fetch(webhook_url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': 'feathers' },
      body: JSON.stringify({ update_id: 1, message: bot.message({ text: 'forged' }) }),
    });
    expect(forged.status).toBe(401);
    expect(bot.isPolled).toBe(false);
  });

  test('a long reply comes in parts within the limit, fences closed and reopened', async () => {
    const code = Array.from({ length: 300 }, (_, i) => `line ${i} 🧵`).join('\n');
    const long = `Here:\n\n\`\`\`ts\n${code}\n\`\`\`\n\n${'😀 words '.repeat(1000)}`;
    scene = await TelegramScene.open([{ text: long }]);
    const { bot } = scene;
    await scene.gateway().start();
    bot.say({ text: 'go' });
    const expected = long.replaceAll('```ts', '').replaceAll('```', '').replaceAll(/\s/g, '');
    await until('all of it is there', () => scene.textsIn(42).join('').replaceAll(/\s/g, '') === expected);
    const parts = bot.callsOf('sendMessage').map(({ payload }) => String(payload.text));
    expect(parts.length).toBeGreaterThan(2);
    for (const text of scene.textsIn(42)) expect([text.length <= 4096, text.isWellFormed()]).toEqual([true, true]);
    for (const part of parts) expect((part.match(/<pre>/g) ?? []).length).toBe((part.match(/<\/pre>/g) ?? []).length);
  });

  test('a reply grows by edits, one a second at most, and ends as what was generated', {
    timeout: 60_000,
  }, async () => {
    const words = Array.from({ length: 40 }, (_, i) => `word${i}`).join(' ');
    scene = await TelegramScene.open([{ text: words, betweenMs: 100 }]);
    const { bot } = scene;
    await scene.gateway({ display: {} }).start();
    bot.say({ text: 'go' });
    await until('it is complete', () => scene.textsIn(42)[0] === words, 20_000);
    expect(scene.textsIn(42)).toEqual([words]);
    const times = [...bot.callsOf('sendMessage'), ...bot.callsOf('editMessageText')]
      .map(({ at }) => at)
      .toSorted((a, b) => a - b);
    expect(times.length).toBeGreaterThan(3);
    const gaps = times.slice(1).map((at, i) => at - (times[i] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(950);
  });

  test('direct chat, group and forum topic are sessions of their own', async () => {
    scene = await TelegramScene.open();
    const { bot } = scene;
    const gateway = scene.gateway();
    await gateway.start();
    bot.say({ text: 'hello' });
    bot.say({ text: 'hello @moirai_bot', chat: -100, type: 'supergroup' });
    bot.say({ text: 'hello @moirai_bot', chat: -100, type: 'supergroup', topic: 5 });
    await scene.heardIn(42, 1);
    await scene.heardIn(-100, 2);
    const { data } = await gateway.get<{ data: { key: string }[] }>('/v1/sessions?platform=telegram');
    expect(data.map(({ key }) => key).toSorted()).toEqual([
      'agent:main:telegram:dm:42',
      'agent:main:telegram:group:-100:42',
      'agent:main:telegram:thread:-100:5',
    ]);
    expect(scene.textsIn(42)).toEqual(['did: hello']);
    expect(bot.callsOf('setMyCommands')).toHaveLength(1);
    expect(bot.callsOf('sendChatAction').length).toBeGreaterThan(0);
  });
});
