import { expect, test } from 'vitest';
import { LATE_TEXT } from '../../../src/turns/texts.ts';
import { refusal } from '../../fakes/whatsapp-rules.ts';
import { PlatformScene } from '../gateway-suite.ts';
import { subject } from './subject.ts';
import type { WhatsAppWorld } from './world.ts';

const [MODE] = subject.modes;
const KEY = `agent:main:${subject.keys.dm}`;

interface Failed {
  readonly session_key?: string;
  readonly error: string;
}

async function openScene(settings: Record<string, unknown> = {}) {
  const scene = await PlatformScene.open(subject, MODE!, settings);
  const { fake } = scene.world as WhatsAppWorld;
  const texts = () => scene.world.shown().map(({ text }) => text);
  const failed = async () => (await scene.gateway.get<{ data: Failed[] }>('/v1/events?types=delivery:failed')).data;
  return { scene, fake, texts, failed, [Symbol.asyncDispose]: () => scene[Symbol.asyncDispose]() };
}

test('a reply that a status says came too late has failed, is no message, and is sent when they write again', async () => {
  await using at = await openScene();
  const { scene, fake, texts } = at;
  await scene.world.say({ text: 'one' });
  await scene.until('the first answer', () => texts().includes('did: one'));
  fake.failsLater = { code: 131047, title: 'Re-engagement message' };
  await scene.world.say({ text: 'two' });
  await scene.until('the failure', async () => (await at.failed()).length === 1);
  fake.failsLater = null;
  const [{ error, ...rest }] = (await at.failed()) as [Failed];
  expect(error).toContain('Re-engagement message');
  expect(JSON.stringify(rest)).toContain(KEY);
  expect(texts()).toEqual(['did: one']);
  await scene.world.say({ text: 'three' });
  await scene.until('what was kept', () => texts().includes(`${LATE_TEXT}\n\ndid: two`));
  await scene.until('the new answer', () => texts().includes('did: three'));
  // Every status that came was none of them.
  const { data } = await scene.gateway.get<{ data: object[] }>('/v1/events?types=agent:start');
  expect(data).toHaveLength(3);
});

test('a reply that comes too late goes by template, where there is one', async () => {
  const template = { name: 'late_reply', language: 'en' };
  await using at = await openScene({ platform: { template } });
  const { scene, fake, texts } = at;
  fake.templates.add('late_reply en');
  fake.failNext('messages', refusal(131047, 'Re-engagement message'));
  await scene.world.say({ text: 'one' });
  await scene.until('the answer', () => texts().includes('did: one'));
  expect([...fake.messages.values()].map(({ payload }) => payload.type)).toEqual(['template']);
  expect(await at.failed()).toEqual([]);
});

test('the whole of a long reply comes when they write, as its beginning in the template says', async () => {
  const template = { name: 'late_reply', language: 'en' };
  await using at = await openScene({ platform: { template } });
  const { scene, fake, texts } = at;
  fake.templates.add('late_reply en');
  fake.failNext('messages', refusal(131047, 'Re-engagement message'));
  const long = 'many words '.repeat(150).trim();
  await scene.world.say({ text: long });
  await scene.until('the beginning', () => texts()[0]?.includes('The whole comes when you write to me') === true);
  await scene.until('the failure', async () => (await at.failed()).length === 1);
  await scene.world.say({ text: 'go on' });
  await scene.until('the whole', () => texts().includes(`${LATE_TEXT}\n\ndid: ${long}`));
});

test('a reply whose answer was lost is shown once, because its status says that it arrived', async () => {
  await using at = await openScene();
  const { scene, fake, texts } = at;
  fake.failNext('messages', 'lost');
  await scene.world.say({ text: 'one' });
  await scene.world.say({ text: 'two', person: 1 });
  const sent = async () => (await scene.gateway.get<{ data: object[] }>('/v1/events?types=delivery:sent')).data;
  await scene.until('both are sent', async () => (await sent()).length === 2);
  expect(texts().toSorted()).toEqual(['did: one', 'did: two']);
});

test('a request that somebody kept and sends again does nothing', async () => {
  await using at = await openScene();
  const { scene, fake, texts } = at;
  const { payload } = fake.hear({ from: '15550001000', fields: { type: 'text', text: { body: 'one' } } });
  await scene.until('the answer', () => texts().includes('did: one'));
  for (let time = 0; time < 3; time += 1) {
    expect(await fake.webhooks.post(payload, fake.webhooks.sign(JSON.stringify(payload)))).toBe(200);
  }
  await scene.world.say({ text: 'two' });
  await scene.until('the next answer', () => texts().includes('did: two'));
  expect(texts()).toEqual(['did: one', 'did: two']);
});
