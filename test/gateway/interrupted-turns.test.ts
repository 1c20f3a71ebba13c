import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpFake } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { until } from '../hooks/scene.ts';
import { GatewayProcess } from './process.ts';

/** Says nothing at first, and answers once the turn goes on. */
const script: ModelScript = ({ body }) => {
  return JSON.stringify(body).includes('interrupted') ? { text: 'held on' } : { text: 'one two', hangAfter: 0 };
};

let model: HttpFake;
let gateway: GatewayProcess;

beforeEach(async () => {
  model = await startOpenAiServer(script);
  gateway = new GatewayProcess({
    gateway: { drain_timeout: '100ms' },
    model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
  });
  await gateway.start();
});

afterEach(async () => {
  await gateway.close();
  await model.close();
});

const asked = (times: number): Promise<void> =>
  until('the model is asked', () => questions(model).length === times, 30_000);

test('a one-shot that is sent again with its key after SIGKILL gets the reply of its turn', async () => {
  const body = { text: 'hold', idempotency_key: 'k' };
  const lost = gateway.chat(body).catch(() => null);
  await asked(1);
  await gateway.end('SIGKILL');
  expect(await lost).toBeNull();
  await gateway.start();
  const answer = await gateway.chat(body);
  expect(answer).toMatchObject({ status: 200, outcome: 'done', reply: 'held on' });
  const { data } = await gateway.get<{ data: { id: string; end_reason: string }[] }>('/v1/sessions');
  expect(data).toMatchObject([{ id: answer.session_id, end_reason: 'api_close' }]);
  expect(await gateway.chat(body)).toEqual(answer);
  expect(questions(model)).toHaveLength(2);
});

test.each([
  ['/v1/chat', { text: 'hold', stream: true }],
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hold' }], stream: true }],
  ['/v1/responses', { input: 'hold', stream: true }],
])('a stream of %s that a stop cuts ends with a coded error, and the turn can be followed', async (path, body) => {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${gateway.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const turnId = response.headers.get('x-moirai-turn') ?? '';
  await asked(1);
  await gateway.end('SIGTERM');
  const stream = await response.text();
  expect(stream).toContain('"turn_interrupted"');
  expect(stream).not.toContain('"finish_reason":"stop"');
  expect(stream).not.toContain('response.completed');
  await gateway.start();
  const accept = { accept: 'text/event-stream' };
  const followed = await (await fetch(`${gateway.url}/v1/turns/${turnId}`, { headers: accept })).text();
  expect(followed).toContain(`event: text\ndata: {"text":"held`);
  expect(followed).toMatch(/event: done\ndata: .*"reply":"held on","outcome":"done"/);
  const read = await gateway.get(`/v1/turns/${turnId}`);
  expect(read).toMatchObject({ id: turnId, state: 'over', outcome: 'done', reply: 'held on', error: null });
});

test('a turn that nobody has is not found, and one that is stopped by its id is interrupted', async () => {
  expect(await gateway.get('/v1/turns/trn_nobody')).toMatchObject({ error: { code: 'turn_not_found' } });
  const running = gateway.chat({ text: 'hold', conversation: 'c' });
  await asked(1);
  const { data } = await gateway.get<{ data: { turn_id: string }[] }>('/v1/events?types=agent:start');
  const turnId = data[0]?.turn_id ?? '';
  expect(await gateway.get(`/v1/turns/${turnId}?wait=50ms`)).toMatchObject({ state: 'running', reply: null });
  const waited = gateway.get(`/v1/turns/${turnId}?wait=60s`);
  // This one comes after it, and is answered while it waits.
  expect(await gateway.get(`/v1/turns/${turnId}`)).toMatchObject({ state: 'running' });
  const { status, answer } = await gateway.post(`/v1/turns/${turnId}/stop`, {});
  expect([status, answer]).toMatchObject([200, { state: 'over', outcome: 'interrupted', error: null }]);
  expect(await waited).toEqual(answer);
  expect(await running).toMatchObject({ status: 200, outcome: 'interrupted', turn_id: turnId });
});
