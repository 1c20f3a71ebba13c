import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI, { type APIError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { HttpFake } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { until } from '../hooks/scene.ts';
import { freePort } from '../support/free-port.ts';
import { GatewayProcess } from './process.ts';

const HANGS = { text: 'one two', hangAfter: 0 };

const script: ModelScript = ({ body }) => {
  const last = body.messages.at(-1);
  if (last?.role === 'tool') return { text: `The file says: ${String(last.content)}` };
  const text = JSON.stringify(last?.content);
  if (text.includes('read')) return { toolCalls: [{ name: 'read_file', args: { path: 'note.txt' } }] };
  if (text.includes('hold')) return JSON.stringify(body).includes('interrupted') ? { text: 'held on' } : HANGS;
  return { text: `heard ${body.messages.length} messages`, usage: { input: 11, output: 7 } };
};

let model: HttpFake;
let gateway: GatewayProcess;
let client: OpenAI;

beforeAll(async () => {
  model = await startOpenAiServer(script);
  const port = await freePort();
  gateway = new GatewayProcess({
    gateway: { api_key: 'the-key', port, drain_timeout: '100ms' },
    agent: { workspace: 'shared' },
    model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
  });
  mkdirSync(join(gateway.home, 'workspace'));
  writeFileSync(join(gateway.home, 'workspace', 'note.txt'), 'plums are ripe');
  await gateway.start();
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'the-key', maxRetries: 0 });
});

afterAll(async () => {
  await gateway.close();
  await model.close();
});

const say = (content: string) => ({ model: 'fake-model', messages: [{ role: 'user' as const, content }] });

describe('the official client', () => {
  test('asks and is answered, with the usage', async () => {
    const answer = await client.chat.completions.create(say('hello'));
    expect(answer.choices[0]?.message.content).toMatch(/^heard \d+ messages$/);
    expect(answer.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7 });
  });

  test('streams', async () => {
    let text = '';
    for await (const part of await client.chat.completions.create({ ...say('hello'), stream: true })) {
      text += part.choices[0]?.delta.content ?? '';
    }
    expect(text).toMatch(/^heard \d+ messages$/);
  });

  test('lists models, and is told of one that is unknown', async () => {
    const names = (await client.models.list()).data.map(({ id }) => id);
    expect(names).toContain('fake-model');
    await expect(client.chat.completions.create({ ...say('hello'), model: 'nothing' })).rejects.toMatchObject({
      status: 404,
      code: 'model_unknown',
    });
  });

  test('has a lasting conversation by a header, and tools work in it', async () => {
    const options = { headers: { 'x-moirai-conversation': 'lasting' } };
    await client.chat.completions.create(say('hello'), options);
    const answer = await client.chat.completions.create(say('please read the note'), options);
    expect(answer.choices[0]?.message.content).toContain('plums are ripe');
    const authorized = { headers: { authorization: 'Bearer the-key' } };
    const list = await fetch(`${gateway.url}/v1/sessions?key=agent:main:api:dm:lasting`, authorized);
    const { data } = (await list.json()) as { data: { id: string; message_count: number }[] };
    const rows = await fetch(`${gateway.url}/v1/sessions/${data[0]?.id}/messages`, authorized);
    const roles = ((await rows.json()) as { data: { role: string; text: string }[] }).data.map(({ role }) => role);
    expect(roles).toEqual(['user', 'assistant', 'user', 'assistant', 'tool', 'assistant']);
    expect(JSON.stringify(questions(model).at(-1)?.body.messages)).toContain('hello');
  });

  test('uses the responses endpoint, streaming too', async () => {
    const answer = await client.responses.create({ model: 'fake-model', input: 'hello' });
    expect(answer.output_text).toMatch(/^heard \d+ messages$/);
    let text = '';
    for await (const event of await client.responses.create({ model: 'fake-model', input: 'hello', stream: true })) {
      if (event.type === 'response.output_text.delta') text += event.delta;
    }
    expect(text).toMatch(/^heard \d+ messages$/);
  });

  test.each([
    ['a lasting conversation', { 'x-moirai-conversation': 'stopped' }],
    ['a one-shot', {}],
  ])('is told of %s that goes on after a stop, and sends nothing again', { timeout: 120_000 }, async (_, headers) => {
    const asked = (): number => questions(model).length;
    const before = asked();
    const patient = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'the-key', maxRetries: 3 });
    const answer = patient.chat.completions.create(say('please hold'), { headers }).then(
      () => null,
      (thrown: unknown) => thrown as APIError,
    );
    await until('the model is asked', () => asked() === before + 1);
    await gateway.end('SIGTERM');
    await gateway.start();
    const error = await answer;
    expect(error).toMatchObject({ status: 503, code: 'turn_interrupted' });
    const turnId = (error?.error as { turn_id: string } | undefined)?.turn_id;
    expect(error?.headers?.get('x-should-retry')).toBe('false');
    const authorized = { headers: { authorization: 'Bearer the-key' } };
    const read = async <T>(path: string): Promise<T> => {
      return (await (await fetch(`${gateway.url}${path}`, authorized)).json()) as T;
    };
    const turn = await read<{ session_id: string }>(`/v1/turns/${turnId}?wait=60s`);
    expect(turn).toMatchObject({ id: turnId, state: 'over', outcome: 'done', reply: 'held on', error: null });
    const rows = await read<{ data: { role: string; text: string }[] }>(`/v1/sessions/${turn.session_id}/messages`);
    const said = rows.data.filter(({ role }) => role !== 'note');
    expect(said.map(({ role, text }) => `${role}: ${text}`)).toEqual(['user: please hold', 'assistant: held on']);
  });

  test('is refused with a wrong key', async () => {
    const stranger = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'wrong', maxRetries: 0 });
    await expect(stranger.models.list()).rejects.toMatchObject({ status: 401 });
  });
});
