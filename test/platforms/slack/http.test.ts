import { describe, expect, test } from 'vitest';
import type { WebhookAnswer, WebhookRequest } from '../../../src/platforms/platform.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { openSlack } from './scene.ts';

const EVENTS = 'application/json';
const FORM = 'application/x-www-form-urlencoded';

/** In real time: two seconds are two seconds. */
async function openHttp() {
  const scene = await openSlack({ mode: 'http', speed: 1 });
  const requestOf = (body: string, headers: Record<string, string> = {}, time = Math.floor(Date.now() / 1000)) => {
    const signature = scene.fake.delivery.sign(String(time), body);
    const signed = {
      'x-slack-request-timestamp': String(time),
      'x-slack-signature': signature,
      'content-type': EVENTS,
    };
    const all = { ...signed, ...headers };
    return { method: 'POST', path: '', query: new URLSearchParams(), headers: all, body: Buffer.from(body) };
  };
  const post = (request: WebhookRequest): Promise<WebhookAnswer> => scene.platform.receiveWebhook!(request);
  return { ...scene, requestOf, post };
}

function eventOf(text: string, ts = '1760000500.000100'): string {
  const event = { type: 'message', channel: 'D42', channel_type: 'im', user: 'U42', text, ts };
  return JSON.stringify({ type: 'event_callback', team_id: 'T1', event_id: `Ev-${ts}`, event });
}

describe('a signed request', () => {
  test('is answered with the challenge when the address is entered', async () => {
    await using scene = await openHttp();
    const body = JSON.stringify({ type: 'url_verification', token: 'old', challenge: 'say-this' });
    expect(await scene.post(scene.requestOf(body))).toMatchObject({ status: 200, body: 'say-this' });
    expect(await scene.post(scene.requestOf(body, { 'x-slack-signature': 'v0=00' }))).toEqual({ status: 401 });
  });

  test('that comes again to the byte is refused, and so are stale, forged and unsigned ones', async () => {
    await using scene = await openHttp();
    const request = scene.requestOf(eventOf('once'));
    expect(await scene.post(request)).toEqual({ status: 200 });
    expect(await scene.post(request)).toEqual({ status: 401 });
    const now = Math.floor(Date.now() / 1000);
    for (const time of [now - 301, now + 302]) {
      expect(await scene.post(scene.requestOf(eventOf('other'), {}, time))).toEqual({ status: 401 });
    }
    const foreign = { ...scene.requestOf(eventOf('other')), body: Buffer.from(eventOf('changed')) };
    expect(await scene.post(foreign)).toEqual({ status: 401 });
    for (const header of ['x-slack-signature', 'x-slack-request-timestamp']) {
      expect(await scene.post(scene.requestOf(eventOf('other'), { [header]: '' }))).toEqual({ status: 401 });
    }
    expect(scene.inbox.texts).toEqual(['once']);
  });

  test('that Slack makes again is the same message, known by its id', async () => {
    await using scene = await openHttp();
    const retry = { 'x-slack-retry-num': '1', 'x-slack-retry-reason': 'http_timeout' };
    const now = Math.floor(Date.now() / 1000);
    expect(await scene.post(scene.requestOf(eventOf('again')))).toEqual({ status: 200 });
    expect(await scene.post(scene.requestOf(eventOf('again'), retry, now - 7))).toEqual({ status: 200 });
    expect(new Set(scene.inbox.received.map(({ id }) => id)).size).toBe(1);
  });

  test('is answered with 200 only when the inbox has it, and with 503 when that takes two seconds', async () => {
    await using scene = await openHttp();
    const open = scene.inbox.hold();
    const started = performance.now();
    const first = scene.post(scene.requestOf(eventOf('slow')));
    await until(() => scene.inbox.tried.length === 1, 'the try');
    expect(await first).toEqual({ status: 503 });
    expect(performance.now() - started).toBeGreaterThan(1900);
    const now = Math.floor(Date.now() / 1000);
    const second = scene.post(scene.requestOf(eventOf('slow'), { 'x-slack-retry-num': '1' }, now - 1));
    open();
    expect(await second).toEqual({ status: 200 });
    expect(scene.inbox.tried.map(({ text }) => text)).toEqual(['slow']);
  });

  test('that means nothing to us is acknowledged, so that it does not come again', async () => {
    await using scene = await openHttp();
    for (const body of ['{', 'null', '[]', '{}', '', '{"type":"event_callback","event":{"type":"team_join"}}']) {
      expect(await scene.post(scene.requestOf(body))).toEqual({ status: 200 });
    }
    expect(scene.inbox.tried).toEqual([]);
  });

  test('is not taken before the platform is started and after it is stopped, and never where sockets are used', async () => {
    await using scene = await openHttp();
    await scene.platform.stop();
    expect(await scene.post(scene.requestOf(eventOf('late')))).toEqual({ status: 503 });
    expect(await scene.post({ ...scene.requestOf(eventOf('got')), method: 'GET' })).toEqual({ status: 404 });
    await using other = await openSlack();
    expect(await other.platform.receiveWebhook!(scene.requestOf(eventOf('late')))).toEqual({ status: 404 });
  });

  test('brings commands and buttons as forms', async () => {
    await using scene = await openHttp();
    const command = {
      command: '/moirai',
      text: 'status',
      channel_id: 'D42',
      user_id: 'U42',
      team_id: 'T1',
      trigger_id: '1.2',
    };
    const form = new URLSearchParams(command).toString();
    expect(await scene.post(scene.requestOf(form, { 'content-type': FORM }))).toEqual({ status: 200 });
    expect(scene.inbox.received).toMatchObject([{ text: '/status', place: { type: 'dm', chat: 'D42', scope: 'T1' } }]);
    const press = {
      ...{ type: 'block_actions', user: { id: 'U42' }, team: { id: 'T1' }, response_url: 'https://elsewhere.test/x' },
      container: { message_ts: '1760000101.000100', channel_id: 'D42' },
      actions: [{ type: 'button', value: 'yes', action_ts: '1760000600.000100' }],
    };
    scene.inbox.answer = 'Thanks.';
    const pressed = new URLSearchParams({ payload: JSON.stringify(press) }).toString();
    expect(await scene.post(scene.requestOf(pressed, { 'content-type': `${FORM}; charset=utf-8` }))).toEqual({
      status: 200,
    });
    expect(scene.inbox.presses).toMatchObject([{ data: 'yes', messageId: '1760000101.000100' }]);
  });
});

test('what was said while no process was there is asked for before the first request is taken', async () => {
  await using scene = await openHttp();
  const { world, inbox, fake, driver, platform } = scene;
  await world.say({ text: 'before' });
  await until(() => inbox.received.length === 1, 'the first');
  await platform.stop();
  const { thread = null } = world.place('dm');
  // Slack has given up bringing it.
  fake.workspace.add({ channel: 'D42', thread, user: 'U42', text: 'behind' });
  const next = await driver.restart!();
  const later = new TestInbox();
  await next.start(later);
  await world.say({ text: 'now' });
  await until(() => later.texts.includes('now'), 'what is said now');
  expect(later.texts.filter((text) => text !== 'before')).toEqual(['behind', 'now']);
});
