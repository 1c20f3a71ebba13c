import { describe, expect, test } from 'vitest';
import type { WebhookRequest } from '../../../src/platforms/platform.ts';
import { WhatsAppCloud } from '../../fakes/whatsapp-cloud.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { personId, whatsappAt } from './world.ts';

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;

async function openScene(speed = 100) {
  const fake = await WhatsAppCloud.start();
  const { platform, runtime } = whatsappAt(fake, {}, speed);
  const inbox = new TestInbox();
  await platform.start(inbox);
  await until(() => platform.state.phase === 'connected', 'connected');
  const request = (body: string, headers: Record<string, string>): WebhookRequest => {
    return { method: 'POST', path: '', query: new URLSearchParams(), headers, body: Buffer.from(body) };
  };
  const { webhooks } = fake;
  const signed = (body: string) => request(body, { 'x-hub-signature-256': webhooks.sign(body) });
  const post = async (body: unknown): Promise<number> => {
    return (await platform.receiveWebhook(signed(typeof body === 'string' ? body : JSON.stringify(body)))).status;
  };
  const now = (): number => Math.floor(runtime.now() / 1000);
  let last = 0;
  const nextId = (): string => {
    last += 1;
    return `wamid.T${last}`;
  };
  const message = (
    text: string,
    { person = 0, age = 0, ...fields }: { person?: number; age?: number } & object = {},
  ) => ({
    from: personId(person),
    id: nextId(),
    timestamp: String(now() - age),
    ...{ type: 'text', text: { body: text }, ...fields },
  });
  const said = (...messages: object[]) => fake.envelope({ contacts: [], messages });
  const close = async () => {
    await platform.stop();
    await fake.close();
  };
  return { fake, platform, runtime, inbox, request, post, message, said, now, [Symbol.asyncDispose]: close };
}

describe('the question whether the address is ours', () => {
  const ask = async (query: Record<string, string>) => {
    await using fake = await WhatsAppCloud.start();
    const { platform } = whatsappAt(fake);
    const body = new Uint8Array();
    return await platform.receiveWebhook({
      method: 'GET',
      path: '',
      query: new URLSearchParams(query),
      headers: {},
      body,
    });
  };
  const right = {
    'hub.mode': 'subscribe',
    'hub.verify_token': 'word-that-was-agreed-on',
    'hub.challenge': '1158201444',
  };

  test('is answered with the challenge, also before the platform is started', async () => {
    expect(await ask(right)).toMatchObject({ status: 200, body: '1158201444' });
    expect((await ask(right)).headers?.['content-type']).toMatch(/^text\/plain/);
  });

  test.each([
    ['another word', { ...right, 'hub.verify_token': 'word-that-was-agreed-o' }],
    ['no word', { 'hub.mode': 'subscribe', 'hub.challenge': '1' }],
    ['another mode', { ...right, 'hub.mode': 'unsubscribe' }],
    ['a challenge that is a page', { ...right, 'hub.challenge': '<script>alert(1)</script>' }],
    ['nothing', {}],
  ])('is refused to who asks with %s', async (_, query) => {
    expect(await ask(query as Record<string, string>)).toEqual({ status: 403 });
  });

  test('is not answered at another path', async () => {
    await using fake = await WhatsAppCloud.start();
    const { platform } = whatsappAt(fake);
    const request = {
      method: 'GET',
      path: 'other',
      query: new URLSearchParams(right),
      headers: {},
      body: new Uint8Array(),
    };
    expect(await platform.receiveWebhook(request)).toEqual({ status: 404 });
  });
});

describe('a signature', () => {
  test.each([
    ['is missing', () => ({})],
    ['is empty', () => ({ 'x-hub-signature-256': '' })],
    [
      'is of another secret',
      (body: string, fake: WhatsAppCloud) => ({ 'x-hub-signature-256': fake.webhooks.sign(body, 'x') }),
    ],
    [
      'is of other bytes',
      (body: string, fake: WhatsAppCloud) => ({ 'x-hub-signature-256': fake.webhooks.sign(`${body} `) }),
    ],
    [
      'is the beginning of the right one',
      (body: string, fake: WhatsAppCloud) => ({ 'x-hub-signature-256': fake.webhooks.sign(body).slice(0, -1) }),
    ],
    ['is the old one over SHA-1', () => ({ 'x-hub-signature': 'sha1=0000' })],
  ])('that %s is refused before anything is read', async (_, headers) => {
    await using scene = await openScene();
    for (const body of [JSON.stringify(scene.said(scene.message('forged'))), 'not even JSON']) {
      const request = scene.request(body, headers(body, scene.fake) as Record<string, string>);
      expect(await scene.platform.receiveWebhook(request)).toEqual({ status: 401 });
    }
    expect(scene.inbox.tried).toEqual([]);
  });

  test('over what was said longer ago than Meta keeps anything is refused, and that is told', async () => {
    await using scene = await openScene();
    expect(await scene.post(scene.said(scene.message('old', { age: 8 * DAY_S })))).toBe(401);
    expect(scene.inbox.tried).toEqual([]);
    expect(scene.runtime.warnings.join()).toContain('older than Meta keeps any');
  });

  test('over what Meta could not bring for six days is taken', async () => {
    await using scene = await openScene();
    expect(await scene.post(scene.said(scene.message('late', { age: 6 * DAY_S })))).toBe(200);
    expect(scene.inbox.texts).toEqual(['late']);
  });

  test('is as young as the newest thing under it', async () => {
    await using scene = await openScene();
    const both = scene.said(scene.message('old', { age: 8 * DAY_S, person: 1 }), scene.message('new'));
    expect(await scene.post(both)).toBe(200);
    expect(scene.inbox.texts.toSorted()).toEqual(['new', 'old']);
  });
});

describe('a request', () => {
  test('with messages for several numbers is acknowledged when the inbox has all of ours', async () => {
    await using scene = await openScene();
    const open = scene.inbox.hold();
    const body = scene.said(scene.message('one'), scene.message('other', { person: 1 }), scene.message('two'));
    const foreign = structuredClone(scene.said(scene.message('not ours'))) as ReturnType<typeof scene.said>;
    const entry = (foreign.entry as { changes: { value: { metadata: Record<string, string> } }[] }[])[0]!;
    entry.changes[0]!.value.metadata.phone_number_id = '999';
    let status = 0;
    const posted = scene
      .post({ ...body, entry: [...(body.entry as object[]), entry] })
      .then((answer) => (status = answer));
    await until(() => scene.inbox.tried.length === 2, 'the first of each chat');
    expect(status).toBe(0);
    open();
    await posted;
    expect(status).toBe(200);
    expect(scene.inbox.texts.toSorted()).toEqual(['one', 'other', 'two']);
    expect(scene.inbox.texts.indexOf('one')).toBeLessThan(scene.inbox.texts.indexOf('two'));
  });

  test('of which one message was not taken comes again, and only that one is taken then', async () => {
    await using scene = await openScene();
    const body = scene.said(scene.message('refused'), scene.message('taken', { person: 1 }));
    scene.inbox.refuseNext();
    expect(await scene.post(body)).toBe(503);
    expect(scene.inbox.texts).toEqual(['taken']);
    expect(await scene.post(body)).toBe(200);
    expect(scene.inbox.texts).toEqual(['taken', 'refused']);
    const ids = scene.inbox.tried.filter(({ text }) => text === 'refused').map(({ id }) => id);
    expect(new Set(ids).size).toBe(1);
  });

  test('that is not durable in time is answered with a failure, and is not taken twice', async () => {
    await using scene = await openScene();
    const open = scene.inbox.hold();
    const body = scene.said(scene.message('slow'));
    expect(await scene.post(body)).toBe(503);
    expect(await scene.post(body)).toBe(503);
    expect(scene.inbox.tried).toHaveLength(1);
    open();
    await until(() => scene.inbox.texts.length === 1, 'the message');
    expect(await scene.post(body)).toBe(200);
    expect(scene.inbox.tried).toHaveLength(1);
  });

  test('that comes while an earlier one is not taken waits for that one', async () => {
    await using scene = await openScene();
    const [first, second, third] = ['first', 'second', 'third'].map((text) => scene.said(scene.message(text)));
    const other = scene.said(scene.message('of another chat', { person: 1 }));
    scene.inbox.refuseNext();
    expect(await scene.post(first)).toBe(503);
    expect(await scene.post(third)).toBe(503);
    expect(await scene.post(second)).toBe(503);
    expect(await scene.post(other)).toBe(200);
    expect(await scene.post(first)).toBe(200);
    expect(await scene.post(second)).toBe(503);
    expect(await scene.post(third)).toBe(200);
    expect(await scene.post(second)).toBe(200);
    expect(scene.inbox.texts).toEqual(['of another chat', 'first', 'third', 'second']);
  });

  test('that never comes again does not keep its chat silent', async () => {
    await using scene = await openScene(1000);
    scene.inbox.refuseNext();
    expect(await scene.post(scene.said(scene.message('lost')))).toBe(503);
    const next = scene.said(scene.message('next'));
    const began = scene.runtime.now();
    let status = await scene.post(next);
    while (status === 503 && scene.runtime.now() - began < 200_000) status = await scene.post(next);
    expect(status).toBe(200);
    expect(scene.inbox.texts).toEqual(['next']);
  });

  test('that says nothing is acknowledged, so that it does not come again', async () => {
    await using scene = await openScene();
    for (const body of ['{', 'null', '[]', '{"object":"page"}', '']) expect(await scene.post(body)).toBe(200);
    expect(scene.inbox.tried).toEqual([]);
  });

  test('is not taken before the platform is started and after it is stopped', async () => {
    await using scene = await openScene();
    await scene.platform.stop();
    expect(await scene.post(scene.said(scene.message('x')))).toBe(503);
  });
});

describe('what is brought once more', () => {
  test('presses no button and shows no sign twice', async () => {
    await using scene = await openScene();
    const context = { from: scene.fake.displayNumber, id: 'wamid.OURS' };
    const interactive = { type: 'button_reply', button_reply: { id: 'approve:1', title: 'Yes' } };
    const press = scene.said(scene.message('', { type: 'interactive', interactive, context } as object));
    const reaction = { message_id: 'wamid.OURS', emoji: '👍' };
    const sign = scene.said(scene.message('', { type: 'reaction', reaction } as object));
    for (const body of [press, sign, press, sign]) expect(await scene.post(body)).toBe(200);
    expect(scene.inbox.presses).toHaveLength(1);
    expect(scene.inbox.events).toHaveLength(1);
  });
});

describe('a status', () => {
  const statusOf = (now: number, status: string, fields: object = {}) => {
    return { id: 'wamid.OUT', status, timestamp: String(now), recipient_id: personId(), ...fields };
  };

  test.each(['sent', 'delivered', 'read', 'played', 'deleted'])('that says %s is no message', async (word) => {
    await using scene = await openScene();
    const statuses = [statusOf(scene.now(), word, { biz_opaque_callback_data: 'dlv_1' })];
    expect(await scene.post(scene.fake.envelope({ statuses }))).toBe(200);
    expect([...scene.inbox.tried, ...scene.inbox.events]).toEqual([]);
  });

  test.each([
    [131047, true],
    [131026, false],
  ])('that says that a message failed with %i tells of it by its key', async (code, expired) => {
    await using scene = await openScene();
    const errors = [{ code, title: 'No', message: 'No', error_data: { details: 'because' } }];
    const statuses = [statusOf(scene.now(), 'failed', { biz_opaque_callback_data: 'dlv_1#2', errors })];
    expect(await scene.post(scene.fake.envelope({ statuses }))).toBe(200);
    const place = { type: 'dm', scope: scene.fake.phoneNumberId, chat: personId() };
    expect(scene.inbox.tried).toEqual([]);
    expect(scene.inbox.events).toEqual([
      { kind: 'message_failed', place, key: 'dlv_1', reason: 'No: because', expired },
    ]);
  });

  test('that says that somebody else’s message failed is nothing to us', async () => {
    await using scene = await openScene();
    expect(await scene.post(scene.fake.envelope({ statuses: [statusOf(scene.now(), 'failed')] }))).toBe(200);
    expect(scene.inbox.events).toEqual([]);
  });

  test('is told of only when the send that it is about is over', async () => {
    await using scene = await openScene();
    scene.fake.failsLater = { code: 131047, title: 'Too late' };
    scene.fake.webhooks.bringTo(null);
    const place = { type: 'dm', chat: personId() } as const;
    scene.fake.hear({ from: personId(), fields: {} });
    await scene.platform.send(place, { text: 'x', key: 'dlv_1' }, new AbortController().signal);
    const sentAt = scene.runtime.now();
    const errors = [{ code: 131047, title: 'Too late' }];
    const statuses = [statusOf(scene.now(), 'failed', { biz_opaque_callback_data: 'dlv_1', errors })];
    expect(await scene.post(scene.fake.envelope({ statuses }))).toBe(200);
    expect(scene.runtime.now() - sentAt).toBeGreaterThanOrEqual(1900);
    expect(scene.inbox.events).toHaveLength(1);
  });
});

describe('what was taken', () => {
  test('is marked as read, and only then', async () => {
    await using scene = await openScene();
    const { id, payload } = scene.fake.hear({ from: personId(), fields: { type: 'text', text: { body: 'hello' } } });
    scene.inbox.refuseNext();
    expect(await scene.post(payload)).toBe(503);
    expect(scene.fake.read).toEqual([]);
    expect(await scene.post(payload)).toBe(200);
    await until(() => scene.fake.read.includes(id), 'the read mark');
    expect(scene.fake.typing).toEqual([]);
  });

  test('is quoted with its words when it is answered', async () => {
    await using scene = await openScene();
    scene.fake.hear({ from: personId(), fields: {} });
    const place = { type: 'dm', chat: personId() } as const;
    const { messageId } = await scene.platform.send(place, { text: 'our words' }, new AbortController().signal);
    const context = { from: scene.fake.displayNumber, id: messageId };
    const question = scene.message('what?', { context } as object);
    expect(await scene.post(scene.said(question))).toBe(200);
    const again = scene.message('that', { context: { from: personId(), id: question.id } } as object);
    expect(await scene.post(scene.said(again))).toBe(200);
    expect(scene.inbox.received.map(({ repliesTo }) => repliesTo)).toMatchObject([
      { messageId, own: true, text: 'our words' },
      { messageId: question.id, own: false, text: 'what?' },
    ]);
  });
});
