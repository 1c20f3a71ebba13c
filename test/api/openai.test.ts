import OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import { apiFixture, ask } from './support/api-fixture.ts';
import type { Script } from './support/scripted-backend.ts';

const KEY = 'a-key-of-the-loom';
const fixture = apiFixture({ apiKey: KEY });
let client: OpenAI;
beforeEach(() => {
  client = new OpenAI({ apiKey: KEY, baseURL: `${fixture.api.url}/v1` });
});

const inPieces: Script = async (_saying, show) => {
  for (const text of ['Once ', 'upon ', 'a time']) show({ type: 'text', text });
  return { text: 'Once upon a time' };
};
const failing: Script = () => ({ outcome: 'failed', errorCode: 'model_unavailable', text: 'The model is not there.' });

describe('the official client', () => {
  test('gets a chat completion with its usage', async () => {
    const completion = await client.chat.completions.create({
      model: 'loom-1',
      messages: [{ role: 'user', content: 'hello' }],
    });
    expect(completion.choices[0]).toMatchObject({
      ...{ index: 0, finish_reason: 'stop' },
      message: { role: 'assistant', content: 'You said: hello' },
    });
    expect(completion.usage).toEqual({ prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 });
    expect(completion).toMatchObject({
      object: 'chat.completion',
      model: 'loom-1',
      id: expect.stringMatching(/^chatcmpl-/),
    });
  });

  test('hands its own messages over as the history of a one-shot session', async () => {
    const { data, response } = await client.chat.completions
      .create({
        model: 'weaver/loom-2',
        user: 'ada',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: [{ type: 'text', text: 'hello' }] },
          { role: 'assistant', content: 'hi' },
          { role: 'user', content: 'and now?' },
        ],
      })
      .withResponse();
    expect(data.choices[0]?.message.content).toBe('You said: and now?');
    expect(fixture.backend.said).toMatchObject([
      {
        ...{ text: 'and now?', conversation: null, userId: 'ada', model: 'weaver/loom-2' },
        history: [
          { role: 'system', text: 'Be brief.' },
          { role: 'user', text: 'hello' },
          { role: 'assistant', text: 'hi' },
        ],
      },
    ]);
    const id = response.headers.get('x-moirai-session');
    const { json } = await ask(fixture.api, `/v1/sessions/${id}`, { headers: { authorization: `Bearer ${KEY}` } });
    expect(json).toMatchObject({ state: 'ended', end_reason: 'api_close' });
  });

  test('goes on in a lasting conversation, named in a header or in the body', async () => {
    const messages = [
      { role: 'user', content: 'ignored' },
      { role: 'user', content: 'hello' },
    ] as const;
    const params = { model: 'moirai', messages: [...messages] };
    const headers = { 'x-moirai-conversation': 'tale' };
    const first = await client.chat.completions.create(params, { headers }).withResponse();
    const second = await client.chat.completions
      .create({ ...params, conversation: 'tale' } as typeof params)
      .withResponse();
    const third = await client.responses
      .create({ model: 'moirai', input: 'hello', conversation: 'tale' })
      .withResponse();
    const sessions = [first, second, third].map(({ response }) => response.headers.get('x-moirai-session'));
    expect(new Set(sessions).size).toBe(1);
    expect(fixture.backend.said).toHaveLength(3);
    for (const said of fixture.backend.said)
      expect(said).toMatchObject({ conversation: 'tale', history: [], model: null });
  });

  test('streams a chat completion, with its usage when it asks for it', async () => {
    fixture.backend.script = inPieces;
    const stream = await client.chat.completions.create({
      model: 'loom-1',
      messages: [{ role: 'user', content: 'hello' }],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content)).toEqual([
      ...['', 'Once ', 'upon ', 'a time'],
      ...[undefined, undefined],
    ]);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.at(-1)?.usage).toEqual({ prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    const helper = client.chat.completions.stream({ model: 'loom-1', messages: [{ role: 'user', content: 'hello' }] });
    expect((await helper.finalChatCompletion()).choices[0]?.message.content).toBe('Once upon a time');
  });

  test('gets a reply that was never told in pieces as one', async () => {
    const stream = await client.chat.completions.create({
      ...{ model: 'loom-1', stream: true as const },
      messages: [{ role: 'user', content: 'hello' }],
    });
    const texts = (await Array.fromAsync(stream)).map(({ choices }) => choices[0]?.delta.content ?? '');
    expect(texts.join('')).toBe('You said: hello');
  });

  test('gets a response', async () => {
    const response = await client.responses.create({
      model: 'loom-1',
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: 'hello' },
        { role: 'assistant', content: 'hi' },
        { role: 'user', content: [{ type: 'input_text', text: 'and now?' }] },
      ],
      metadata: { tale: '1' },
    });
    expect(response.output_text).toBe('You said: and now?');
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      metadata: { tale: '1' },
      model: 'loom-1',
    });
    expect(response.usage).toMatchObject({ input_tokens: 7, output_tokens: 3, total_tokens: 10 });
    expect(fixture.backend.said[0]?.history).toEqual([
      { role: 'system', text: 'Be brief.' },
      { role: 'user', text: 'hello' },
      { role: 'assistant', text: 'hi' },
    ]);
  });

  test('streams a response', async () => {
    fixture.backend.script = inPieces;
    const stream = await client.responses.create({ model: 'loom-1', input: 'hello', stream: true });
    const events = await Array.fromAsync(stream);
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, i) => i));
    const helper = client.responses.stream({ model: 'loom-1', input: 'hello' });
    expect((await helper.finalResponse()).output_text).toBe('Once upon a time');
  });

  test('lists models, the configured one first, and finds one by its name', async () => {
    const models = await Array.fromAsync(client.models.list());
    expect(models.map(({ id }) => id)).toEqual(['loom-1', 'weaver/loom-2']);
    expect((await client.models.retrieve('weaver/loom-2')).id).toBe('weaver/loom-2');
    await expect(client.models.retrieve('nobody')).rejects.toMatchObject({ status: 404, code: 'model_unknown' });
  });
});

describe('what goes wrong reaches the official client as its own errors', () => {
  const params = { model: 'loom-1', messages: [{ role: 'user' as const, content: 'hello' }] };

  test('and is not tried again by itself when a turn failed', async () => {
    fixture.backend.script = failing;
    await expect(client.chat.completions.create(params)).rejects.toMatchObject({
      ...{ status: 502, code: 'model_unavailable', type: 'server_error' },
      message: '502 The model is not there.',
    });
    await expect(client.responses.create({ model: 'loom-1', input: 'hello' })).rejects.toMatchObject({ status: 502 });
    expect(fixture.backend.said).toHaveLength(2);
  });

  test('also in the middle of a stream', async () => {
    fixture.backend.script = (request, show) => {
      show({ type: 'text', text: 'Once' });
      return failing(request, show);
    };
    const stream = await client.chat.completions.create({ ...params, stream: true });
    await expect(Array.fromAsync(stream)).rejects.toMatchObject({ code: 'model_unavailable' });
    const events = await Array.fromAsync(
      await client.responses.create({ model: 'loom-1', input: 'hello', stream: true }),
    );
    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'model_unavailable', message: 'The model is not there.' } },
    });
  });

  test('when the key is wrong, the gateway drains, or the request makes no sense', async () => {
    const stranger = new OpenAI({ apiKey: 'wrong', baseURL: `${fixture.api.url}/v1`, maxRetries: 0 });
    await expect(stranger.models.list()).rejects.toMatchObject({ status: 401, type: 'authentication_error' });
    const refused = async (body: object) =>
      client.chat.completions.create(body as typeof params).then(
        () => null,
        (error: InstanceType<typeof OpenAI.APIError>) => [error.status, error.code, error.type],
      );
    const bad = [400, 'bad_input', 'invalid_request_error'];
    expect(await refused({ model: 'loom-1', messages: [] })).toEqual(bad);
    expect(await refused({ model: 'loom-1', messages: [{ role: 'assistant', content: 'hi' }] })).toEqual(bad);
    expect(await refused({ model: 'loom-1', messages: [{ role: 'king', content: 'hi' }] })).toEqual(bad);
    expect(await refused({ ...params, n: 2 })).toEqual(bad);
    const image = { type: 'image_url', image_url: { url: 'data:' } };
    expect(await refused({ model: 'loom-1', messages: [{ role: 'user', content: [image] }] })).toEqual(bad);
    await expect(
      client.responses.create({ model: 'loom-1', input: 'hello', previous_response_id: 'resp_1' }),
    ).rejects.toMatchObject({ status: 400 });
    await fixture.backend.drain();
    const patient = new OpenAI({ apiKey: KEY, baseURL: `${fixture.api.url}/v1`, maxRetries: 0 });
    await expect(patient.chat.completions.create(params)).rejects.toMatchObject({ status: 503, code: 'draining' });
  });

  test('is told of a turn that was stopped, and gets no words of the gateway as the reply of the model', async () => {
    fixture.backend.script = () => ({ text: 'Stopped.', outcome: 'interrupted' });
    await expect(client.chat.completions.create(params)).rejects.toMatchObject({ status: 409, code: 'turn_stopped' });
    const stream = await client.responses.create({ model: 'loom-1', input: 'hello', stream: true });
    const types: string[] = [];
    for await (const { type } of stream) types.push(type);
    expect(types.at(-1)).toBe('response.failed');
  });
});
