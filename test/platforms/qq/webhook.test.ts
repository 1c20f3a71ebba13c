import { describe, expect, test } from 'vitest';
import type { WebhookRequest } from '../../../src/platforms/platform.ts';
import { SigningKeys, validation } from '../../../src/platforms/qq/webhook.ts';
import { patience } from '../../support/patience.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { openScene, qqAt } from './scenes.ts';
import { personId, QqWorld, signedHeaders } from './world.ts';

const NOW = 1_725_442_341_000;

describe('what QQ has published about its signatures', () => {
  test('is what we answer when the address is entered', () => {
    const keys = new SigningKeys('DG5g3B4j9X2KOErG');
    const d = { plain_token: 'Arq0D5A61EgUu4OxUvOp', event_ts: '1725442341' };
    const answer = validation({ op: 13, d }, keys);
    expect(answer?.status).toBe(200);
    expect(JSON.parse(answer?.body ?? '')).toEqual({
      plain_token: 'Arq0D5A61EgUu4OxUvOp',
      signature:
        '87befc99c42c651b3aac0278e71ada338433ae26fcb24307bdc5ad38c1adc2d01bcfcadc0842edac85e85205028a1132afe09280305f13aa6909ffc2d652c706',
    });
  });

  test('is what we take for a request of QQ', () => {
    const keys = new SigningKeys('naOC0ocQE3shWLAfffVLB1rhYPG7');
    const body = Buffer.from('{\n  "op": 0,\n  "d": {},\n  "t": "GATEWAY_EVENT_NAME"\n}');
    const headers = {
      'x-signature-timestamp': '1725442341',
      'x-signature-ed25519':
        '865ad13a61752ca65e26bde6676459cd36cf1be609375b37bd62af366e1dc25a8dc789ba7f14e017ada3d554c671a911bfdf075ba54835b23391d509579ed002',
    };
    const request = { method: 'POST', path: '', query: new URLSearchParams(), headers, body };
    expect(keys.isFromQq(request, NOW)).toBe(true);
    expect(keys.isFromQq(request, NOW + 300_000)).toBe(true);
    expect(keys.isFromQq(request, NOW + 301_000)).toBe(false);
    expect(keys.isFromQq(request, NOW - 301_000)).toBe(false);
    expect(keys.isFromQq({ ...request, body: Buffer.from('{}') }, NOW)).toBe(false);
  });

  test.each([
    ['nothing', ''],
    ['half of it', 'ab'.repeat(32)],
    ['no digits', 'zz'.repeat(64)],
    ['zeros', '00'.repeat(64)],
    ['too much', 'ab'.repeat(65)],
  ])('is not followed by who sends %s as a signature', (_, signature) => {
    const keys = new SigningKeys('DG5g3B4j9X2KOErG');
    const headers = { 'x-signature-timestamp': '1725442341', 'x-signature-ed25519': signature };
    const request = { method: 'POST', path: '', query: new URLSearchParams(), headers, body: Buffer.from('{}') };
    expect(keys.isFromQq(request, NOW)).toBe(false);
  });

  test.each([
    [{ plain_token: '{"op":0,"t":"C2C_MESSAGE_CREATE"}', event_ts: '1725442341' }],
    [{ plain_token: 'x', event_ts: '1725442341{' }],
    [{ plain_token: '', event_ts: '1725442341' }],
    [{ plain_token: 'x' }],
    [null],
  ])('is no way to have an event signed by us: %j', (d) => {
    expect(validation({ op: 13, d }, new SigningKeys('DG5g3B4j9X2KOErG'))).toEqual({ status: 400 });
  });
});

async function openHook() {
  // Signatures have a time: that of the machine.
  const scene = await openScene('webhook', undefined, 1);
  const post = (payload: unknown, at = Date.now()) => {
    const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
    return scene.platform.receiveWebhook(requestOf(body, Math.floor(at / 1000), scene.world.server.secret));
  };
  return { ...scene, post, [Symbol.asyncDispose]: () => scene[Symbol.asyncDispose]() };
}

function requestOf(body: string, seconds: number, secret: string): WebhookRequest {
  const headers = signedHeaders(body, seconds, secret);
  return { method: 'POST', path: '', query: new URLSearchParams(), headers, body: Buffer.from(body) };
}

const messageOf = (id: string, content: string, person = 0) => ({
  ...{ op: 0, id: `event ${id}`, t: 'C2C_MESSAGE_CREATE' },
  d: { id, content, author: { user_openid: personId(person) }, timestamp: new Date().toISOString() },
});

describe('a webhook', () => {
  test('acknowledges only what the inbox has, and says 503 when it could not take it', async () => {
    await using scene = await openHook();
    scene.inbox.refuseNext();
    expect(await scene.post(messageOf('m1', 'precious'))).toEqual({ status: 503 });
    const open = scene.inbox.hold();
    let status = 0;
    const posted = scene.post(messageOf('m1', 'precious')).then((answer) => {
      status = answer.status;
      return answer;
    });
    await until(() => scene.inbox.tried.length === 2, 'the second try');
    expect(status).toBe(0);
    open();
    expect(await posted).toMatchObject({ status: 200, body: '{"op":12}' });
    expect(scene.inbox.texts).toEqual(['precious']);
  });

  test('hands over what comes at once one after the other per chat, and chats beside each other', async () => {
    await using scene = await openHook();
    const open = scene.inbox.hold();
    const posts = [messageOf('a1', 'a1', 1), messageOf('a2', 'a2', 1), messageOf('b1', 'b1', 2)].map((each) =>
      scene.post(each),
    );
    await until(() => scene.inbox.tried.length === 2, 'the first of each chat');
    expect(scene.inbox.tried.map(({ text }) => text)).toEqual(['a1', 'b1']);
    open();
    expect((await Promise.all(posts)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(scene.inbox.texts.filter((text) => text.startsWith('a'))).toEqual(['a1', 'a2']);
  });

  test('refuses what was signed for another time, and for other words', async () => {
    await using scene = await openHook();
    expect(await scene.post(messageOf('m1', 'old'), Date.now() - 3_600_000)).toEqual({ status: 401 });
    const request = requestOf(
      JSON.stringify(messageOf('m1', 'said')),
      Math.floor(Date.now() / 1000),
      'DG5g3B4j9X2KOErG',
    );
    const changed = { ...request, body: Buffer.from(JSON.stringify(messageOf('m1', 'changed'))) };
    expect(await scene.platform.receiveWebhook(changed)).toEqual({ status: 401 });
    expect(scene.inbox.tried).toEqual([]);
  });

  test('acknowledges what is no event, so that it does not come again', async () => {
    await using scene = await openHook();
    for (const body of ['{', 'null', '[]', '{"op":0}', '', '{"op":0,"t":"C2C_MESSAGE_CREATE"}']) {
      expect(await scene.post(body)).toMatchObject({ status: 200 });
    }
    expect(scene.inbox.tried).toEqual([]);
  });

  test('answers when the address is entered, whether it runs or not', async () => {
    await using scene = await openHook();
    const d = { plain_token: 'token', event_ts: '1725442341' };
    const body = JSON.stringify({ op: 13, d });
    const request = { method: 'POST', path: '', query: new URLSearchParams(), headers: {}, body: Buffer.from(body) };
    expect(await scene.platform.receiveWebhook(request)).toMatchObject({ status: 200 });
    await scene.platform.stop();
    expect(await scene.platform.receiveWebhook(request)).toMatchObject({ status: 200 });
  });

  test('takes nothing after it is stopped, and connects to no gateway', async () => {
    await using scene = await openHook();
    await scene.platform.stop();
    expect(await scene.post(messageOf('m1', 'x'))).toEqual({ status: 503 });
    expect(scene.world.server.gateway.identified).toEqual([]);
  });

  test('is not there where the gateway is connected to', async () => {
    await using scene = await openScene('websocket');
    const request = requestOf('{}', Math.floor(Date.now() / 1000), scene.world.server.secret);
    expect(await scene.platform.receiveWebhook(request)).toEqual({ status: 404 });
  });

  test('takes events also while nobody says who we are', async () => {
    await using world = await QqWorld.open('webhook');
    const { platform } = qqAt(world, 'webhook', new Map(), 1);
    const inbox = new TestInbox();
    await platform.start(inbox);
    const request = requestOf(
      JSON.stringify(messageOf('m1', 'early')),
      Math.floor(Date.now() / 1000),
      world.server.secret,
    );
    expect(await platform.receiveWebhook(request)).toMatchObject({ status: 200 });
    expect(inbox.texts).toEqual(['early']);
    const started = performance.now();
    await platform.stop();
    expect(performance.now() - started).toBeLessThan(patience(1000));
  });
});
