import type { ServerResponse } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { webhookSubscriber } from '../../src/extensions/webhooks/webhook.ts';
import { type HttpFake, startHttpFake } from '../fakes/http-fake.ts';
import { Scene, until } from './scene.ts';

const SECRET = `whsec_${Buffer.from('a secret that nobody else knows').toString('base64')}`;

let scene: Scene;
let receiver: HttpFake;
let answer: (response: ServerResponse, index: number) => void;

beforeEach(async () => {
  scene = await Scene.open();
  answer = ok;
  receiver = await startHttpFake(async (_, response, index) => answer(response, index));
});

afterEach(async () => {
  await scene.close();
  await receiver.close();
});

function ok(response: ServerResponse): void {
  response.writeHead(204).end();
}

async function subscribe(timeoutMs = 5000, maxAttempts = 2, url = receiver.url): Promise<void> {
  const webhook = { name: 'mirror', url, secret: SECRET, events: ['session:*', 'agent:*'] };
  await scene.dispatcher.subscribe(webhookSubscriber(webhook, { timeoutMs, maxAttempts, log: scene.log }));
}

async function logged(): Promise<unknown[]> {
  const { events } = await scene.opened.store.read('listEvents', {
    ...{ after: 0, limit: 500, types: ['session:*', 'agent:*'], sessionId: null },
  });
  return events.map(({ event }) => event);
}

/** What arrived, each body verified with the library that receivers use. */
function verified(fake: HttpFake): { id: string; session_key: string }[] {
  return fake.requests.map(({ raw, headers }) => {
    const event = new Webhook(SECRET).verify(raw, headers as Record<string, string>) as { id: string };
    expect(headers['webhook-id']).toBe(event.id);
    expect(headers['content-type']).toBe('application/json');
    return event as { id: string; session_key: string };
  });
}

async function expectMirror(events: { id: string; session_key: string }[]): Promise<void> {
  const log = (await logged()) as { session_key: string }[];
  for (const [key, all] of Map.groupBy(log, ({ session_key }) => session_key)) {
    expect(events.filter(({ session_key }) => session_key === key)).toEqual(all);
  }
  expect(events).toHaveLength(log.length);
}

test('every event arrives once, signed, in order per conversation', async () => {
  await subscribe();
  for (let i = 0; i < 12; i++) await scene.talk(i % 3);
  await until('all arrived', async () => receiver.requests.length === (await logged()).length);
  await expectMirror(verified(receiver));
  const tampered = receiver.requests[0];
  expect(() => new Webhook(SECRET).verify(`${tampered?.raw} `, tampered?.headers as Record<string, string>)).toThrow();
});

test('a receiver that was down, over a restart too, catches up with everything in order', async () => {
  const port = Number(new URL(receiver.url).port);
  await receiver.close();
  await subscribe(5000, 1);
  for (let i = 0; i < 9; i++) await scene.talk(i % 3);
  await until('it was tried', async () => ((await scene.subscriber('webhook:mirror'))?.failures ?? 0) >= 3);
  await scene.crash();
  await scene.talk(0);
  receiver = await startHttpFake(async (_, response) => ok(response), port);
  await subscribe(5000, 1);
  await until('all arrived', async () => receiver.requests.length >= (await logged()).length, 20_000);
  await expectMirror(verified(receiver));
  await until('that is known', async () => (await scene.subscriber('webhook:mirror'))?.lag === 0);
  expect(await scene.subscriber('webhook:mirror')).toMatchObject({ deadLetters: 0 });
});

test.each([408, 429, 500, 503])('%i means that it is down: nothing is counted', async (status) => {
  answer = (response, index) => (index === 0 ? response.writeHead(status).end('later') : ok(response));
  await subscribe(5000, 1);
  await scene.talk(1);
  await until('all arrived', () => receiver.requests.length === 4);
  expect(await scene.subscriber('webhook:mirror')).toMatchObject({ deadLetters: 0 });
  expect(new Set(receiver.requests.slice(0, 2).map(({ raw }) => raw)).size).toBe(1);
});

test('any other answer is a failed attempt, and a redirect is not followed', async () => {
  const elsewhere = await startHttpFake(async (_, response) => ok(response));
  answer = (response, index) =>
    index === 0
      ? response.writeHead(302, { location: elsewhere.url }).end()
      : index === 1
        ? response.writeHead(410).end(`gone ${SECRET}`)
        : ok(response);
  await subscribe(5000, 1);
  await scene.talk(1);
  await until('two are dead', async () => (await scene.subscriber('webhook:mirror'))?.deadLetters === 2);
  await until('the third arrived', () => receiver.requests.length === 3);
  const letters = await scene.opened.store.read('listDeadLetters', { subscriber: null, limit: 9 });
  expect(letters.map(({ error }) => error.replace(/ses_\w+/, 'ID'))).toEqual([
    'mirror answered 302 to ID:1',
    'mirror answered 410 to ID:2',
  ]);
  expect(elsewhere.requests).toEqual([]);
  await elsewhere.close();
});

test('a receiver that hangs is down, and another conversation is served meanwhile', async () => {
  let hang = true;
  answer = (response, index) => {
    if (index === 0 && hang) return;
    ok(response);
  };
  await subscribe(700, 1);
  await scene.talk('stuck');
  await until('it hangs', () => receiver.requests.length === 1);
  hang = false;
  await scene.talk('other');
  await until('the other arrived', () => verified(receiver).some(({ session_key }) => session_key.endsWith(':other')));
  await until('all arrived', () => receiver.requests.length === 7);
  expect((await scene.subscriber('webhook:mirror'))?.deadLetters).toBe(0);
});

test('at most eight conversations are served at a time', async () => {
  let [now, most] = [0, 0];
  answer = (response) => {
    most = Math.max(most, ++now);
    setTimeout(() => {
      now--;
      ok(response);
    }, 50);
  };
  await subscribe();
  for (let i = 0; i < 30; i++) await scene.talk(i);
  await until('all arrived', () => receiver.requests.length === 90 && now === 0);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(8);
});

test('no secret is in an error, also when the address has one', async () => {
  const url = receiver.url.replace('http://', 'http://me:my-password@');
  await subscribe(5000, 9, url);
  answer = (response, index) => (index === 0 ? response.writeHead(400).end(SECRET) : response.destroy());
  await scene.talk(1);
  await until('both happened', () => receiver.requests.length >= 2);
  expect(receiver.requests[0]?.headers.authorization).toBe(`Basic ${btoa('me:my-password')}`);
  const { events } = await scene.opened.store.read('listEvents', { after: 0, limit: 99, types: [], sessionId: null });
  const seen = JSON.stringify([events, await scene.subscriber('webhook:mirror'), scene.logged]);
  expect(seen).toContain('mirror answered 400');
  for (const secret of [SECRET, SECRET.slice(6), 'my-password']) expect(seen).not.toContain(secret);
});
