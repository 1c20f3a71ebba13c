import { describe, expect, test } from 'vitest';
import { WhatsAppCloud } from '../../fakes/whatsapp-cloud.ts';
import { until } from '../contract/scene.ts';
import { openWebhook } from './scene.ts';
import { whatsappAt } from './world.ts';

const DAY_S = 24 * 3600;

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
    await using scene = await openWebhook();
    for (const body of [JSON.stringify(scene.said(scene.message('forged'))), 'not even JSON']) {
      const request = scene.request(body, headers(body, scene.fake) as Record<string, string>);
      expect(await scene.platform.receiveWebhook(request)).toEqual({ status: 401 });
    }
    expect(scene.inbox.tried).toEqual([]);
  });

  test('over what was said longer ago than Meta keeps anything is refused, and that is told', async () => {
    await using scene = await openWebhook();
    expect(await scene.post(scene.said(scene.message('old', { age: 8 * DAY_S })))).toBe(401);
    expect(scene.inbox.tried).toEqual([]);
    expect(scene.runtime.warnings.join()).toContain('older than Meta keeps any');
  });

  test('over what Meta could not bring for six days is taken', async () => {
    await using scene = await openWebhook();
    expect(await scene.post(scene.said(scene.message('late', { age: 6 * DAY_S })))).toBe(200);
    expect(scene.inbox.texts).toEqual(['late']);
  });

  test('is as young as the newest thing under it', async () => {
    await using scene = await openWebhook();
    const both = scene.said(scene.message('old', { age: 8 * DAY_S, person: 1 }), scene.message('new'));
    expect(await scene.post(both)).toBe(200);
    expect(scene.inbox.texts.toSorted()).toEqual(['new', 'old']);
  });
});

describe('a request', () => {
  test('with messages for several numbers is acknowledged when the inbox has all of ours', async () => {
    await using scene = await openWebhook();
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
    await using scene = await openWebhook();
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
    await using scene = await openWebhook();
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
    await using scene = await openWebhook();
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
    await using scene = await openWebhook(1000);
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
    await using scene = await openWebhook();
    for (const body of ['{', 'null', '[]', '{"object":"page"}', '']) expect(await scene.post(body)).toBe(200);
    expect(scene.inbox.tried).toEqual([]);
  });

  test('is not taken before the platform is started and after it is stopped', async () => {
    await using scene = await openWebhook();
    await scene.platform.stop();
    expect(await scene.post(scene.said(scene.message('x')))).toBe(503);
  });
});

describe('what is brought once more', () => {
  test('presses no button and shows no sign twice', async () => {
    await using scene = await openWebhook();
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
