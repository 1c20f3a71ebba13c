import { describe, expect, test } from 'vitest';
import { never, until } from '../contract/scene.ts';
import { dm, openWebhook } from './scene.ts';
import { personId } from './world.ts';

describe('a status', () => {
  const statusOf = (now: number, status: string, fields: object = {}) => {
    return { id: 'wamid.OUT', status, timestamp: String(now), recipient_id: personId(), ...fields };
  };

  test.each(['sent', 'delivered', 'read', 'played', 'deleted'])('that says %s is no message', async (word) => {
    await using scene = await openWebhook();
    const statuses = [statusOf(scene.now(), word, { biz_opaque_callback_data: 'dlv_1' })];
    expect(await scene.post(scene.fake.envelope({ statuses }))).toBe(200);
    expect([...scene.inbox.tried, ...scene.inbox.events]).toEqual([]);
  });

  test.each([
    [131047, true],
    // Only templates fail for these reasons, and only late answers are templates.
    [130472, true],
    [131049, true],
    [131050, true],
    [132015, true],
    [131042, false],
    [131026, false],
  ])('that says that a message failed with %i tells of it by its key', async (code, expired) => {
    await using scene = await openWebhook();
    const errors = [{ code, title: 'No', message: 'No', error_data: { details: 'because' } }];
    const statuses = [statusOf(scene.now(), 'failed', { biz_opaque_callback_data: 'dlv_1#2', errors })];
    expect(await scene.post(scene.fake.envelope({ statuses }))).toBe(200);
    const place = { type: 'dm', scope: scene.fake.phoneNumberId, chat: personId() };
    expect(scene.inbox.tried).toEqual([]);
    expect(scene.inbox.events).toEqual([
      { kind: 'message_failed', place, key: 'dlv_1', reason: 'No: because', expired },
    ]);
  });

  test.each([
    [131042, true],
    [131000, true],
    [131026, false],
  ])('that says that a template was not sent with %i tells whether its words wait', async (code, expired) => {
    const template = { name: 'late_reply', language: 'en' };
    await using scene = await openWebhook(100, { template });
    scene.fake.templates.add('late_reply en');
    scene.fake.webhooks.bringTo(null);
    const reply = { messageId: 'wamid.OLD', data: {}, until: 1 };
    await scene.platform.send(dm, { text: 'late', reply, key: 'dlv_1' }, never);
    const { biz_opaque_callback_data } = scene.fake.calls[0] as { biz_opaque_callback_data: string };
    const errors = [{ code, title: 'No' }];
    const statuses = [statusOf(scene.now(), 'failed', { biz_opaque_callback_data, errors })];
    expect(await scene.post(scene.fake.envelope({ statuses }))).toBe(200);
    expect(scene.inbox.events).toMatchObject([{ kind: 'message_failed', key: 'dlv_1', expired }]);
  });

  test('that says that somebody else’s message failed is nothing to us', async () => {
    await using scene = await openWebhook();
    expect(await scene.post(scene.fake.envelope({ statuses: [statusOf(scene.now(), 'failed')] }))).toBe(200);
    expect(scene.inbox.events).toEqual([]);
  });

  test('is told of only when the send that it is about is over', async () => {
    await using scene = await openWebhook();
    scene.fake.failsLater = { code: 131047, title: 'Too late' };
    scene.fake.webhooks.bringTo(null);
    scene.fake.hear({ from: personId(), fields: {} });
    await scene.platform.send(dm, { text: 'x', key: 'dlv_1' }, never);
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
    await using scene = await openWebhook();
    const { id, payload } = scene.fake.hear({ from: personId(), fields: { type: 'text', text: { body: 'hello' } } });
    scene.inbox.refuseNext();
    expect(await scene.post(payload)).toBe(503);
    expect(scene.fake.read).toEqual([]);
    expect(await scene.post(payload)).toBe(200);
    await until(() => scene.fake.read.includes(id), 'the read mark');
    expect(scene.fake.typing).toEqual([]);
  });

  test('is quoted with its words when it is answered', async () => {
    await using scene = await openWebhook();
    scene.fake.hear({ from: personId(), fields: {} });
    const { messageId } = await scene.platform.send(dm, { text: 'our words' }, never);
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
