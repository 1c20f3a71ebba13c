import { describe, expect, test } from 'vitest';
import type { WebhookRequest } from '../../../src/platforms/platform.ts';
import { BotApiFake } from '../../fakes/bot-api.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { telegramAt } from './world.ts';

const webhook = { url: 'https://gateway.example/telegram', secret: 'right-secret' };

function requestOf(body: string, secret?: string): WebhookRequest {
  const headers = secret === undefined ? {} : { 'x-telegram-bot-api-secret-token': secret };
  return { method: 'POST', path: '', query: new URLSearchParams(), headers, body: Buffer.from(body) };
}

async function openScene() {
  const fake = await BotApiFake.start();
  const { platform, warnings } = telegramAt(fake, webhook);
  const inbox = new TestInbox();
  await platform.start(inbox);
  await until(() => platform.state.phase === 'connected', 'connected');
  const post = (body: unknown, secret = webhook.secret) =>
    platform.receiveWebhook(requestOf(typeof body === 'string' ? body : JSON.stringify(body), secret));
  const close = async () => {
    await platform.stop();
    await fake.close();
  };
  return { fake, platform, warnings, inbox, post, [Symbol.asyncDispose]: close };
}

describe('a webhook', () => {
  test('is registered with its secret and the kinds we know, and never polled beside', async () => {
    await using scene = await openScene();
    expect(scene.fake.callsOf('setWebhook')[0]?.payload).toMatchObject({
      url: webhook.url,
      secret_token: webhook.secret,
      allowed_updates: [
        ...['message', 'edited_message', 'channel_post', 'edited_channel_post', 'callback_query'],
        ...['my_chat_member', 'chat_member', 'message_reaction'],
      ],
    });
    await scene.platform.stop();
    expect(scene.fake.callsOf('getUpdates')).toEqual([]);
    expect(scene.fake.webhook).not.toBeNull();
  });

  test.each([
    ['none', undefined],
    ['an empty one', ''],
    ['a wrong one', 'wrong-secret'],
    ['the beginning of it', 'right-secre'],
    ['several', 'right-secret, right-secret'],
  ])('refuses who does not know the secret: %s', async (_, secret) => {
    await using scene = await openScene();
    const body = JSON.stringify({ update_id: 1, message: scene.fake.message({ text: 'forged' }) });
    expect(await scene.platform.receiveWebhook(requestOf(body, secret))).toEqual({ status: 401 });
    expect(await scene.platform.receiveWebhook(requestOf('not even JSON', secret))).toEqual({ status: 401 });
    expect(scene.inbox.tried).toEqual([]);
  });

  test('says 200 only when the inbox has it, and 503 when it could not take it', async () => {
    await using scene = await openScene();
    const update = { update_id: 1, message: scene.fake.message({ text: 'precious' }) };
    scene.inbox.refuseNext();
    expect(await scene.post(update)).toEqual({ status: 503 });
    const open = scene.inbox.hold();
    let status = 0;
    const posted = scene.post(update).then((answer) => (status = answer.status));
    await until(() => scene.inbox.tried.length === 2, 'the second try');
    expect(status).toBe(0);
    open();
    await posted;
    expect(status).toBe(200);
    expect(scene.inbox.texts).toEqual(['precious']);
  });

  test('hands over what comes at once one after the other per chat, and chats beside each other', async () => {
    await using scene = await openScene();
    const open = scene.inbox.hold();
    const said = [
      { text: 'a1', chat: 1 },
      { text: 'a2', chat: 1 },
      { text: 'b1', chat: 2 },
    ];
    const posts = said.map((words, update_id) => scene.post({ update_id, message: scene.fake.message(words) }));
    await until(() => scene.inbox.tried.length === 2, 'the first of each chat');
    expect(scene.inbox.tried.map(({ text }) => text)).toEqual(['a1', 'b1']);
    open();
    expect(await Promise.all(posts)).toEqual([{ status: 200 }, { status: 200 }, { status: 200 }]);
    expect(scene.inbox.texts.filter((text) => text.startsWith('a'))).toEqual(['a1', 'a2']);
  });

  test('acknowledges what is no update, so that it does not come again', async () => {
    await using scene = await openScene();
    for (const body of ['{', 'null', '[]', '{"update_id":1}', ''])
      expect(await scene.post(body)).toEqual({ status: 200 });
    expect(scene.inbox.tried).toEqual([]);
  });

  test('takes nothing before it is started and after it is stopped', async () => {
    await using scene = await openScene();
    await scene.platform.stop();
    expect(await scene.post({ update_id: 1, message: scene.fake.message({ text: 'x' }) })).toEqual({ status: 503 });
  });

  test('is not there when updates are asked for', async () => {
    await using fake = await BotApiFake.start();
    const { platform } = telegramAt(fake);
    expect(await platform.receiveWebhook(requestOf('{}'))).toEqual({ status: 404 });
  });
});
