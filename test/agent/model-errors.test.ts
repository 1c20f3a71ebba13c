import { describe, expect, test } from 'vitest';
import type { ScriptedReply } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt } from './conversation.ts';

const failures: [string, ScriptedReply, string, RegExp, number][] = [
  ['401', { status: 401, error: { message: 'bad key sk-secret' } }, 'model_unauthorized', /refused the key.*\*\*\*/, 1],
  ['403', { status: 403 }, 'model_unauthorized', /status 403/, 1],
  ['404', { status: 404, error: { message: 'no model x' } }, 'model_unknown', /does not know.*no model x/, 1],
  ['429', { status: 429, error: { message: 'slow down' } }, 'model_rate_limited', /slow down/, 3],
  ['500', { status: 500 }, 'model_unavailable', /not available.*status 500/, 3],
  ['503', { status: 503 }, 'model_unavailable', /status 503/, 3],
  ['400', { status: 400, error: { message: 'temperature' } }, 'model_refused', /refused the request.*temperature/, 1],
  ['422', { status: 422 }, 'model_refused', /status 422/, 1],
  [
    '400 about the length',
    {
      status: 400,
      error: { message: "This model's maximum context length is 8 tokens", code: 'context_length_exceeded' },
    },
    'model_overflow',
    /longer than the model can read/,
    1,
  ],
  ['a stream cut before a word', { text: 'never', cutAfter: 0 }, 'model_cut', /broke off/, 2],
  ['a stream cut in the middle', { text: 'one two three', cutAfter: 2 }, 'model_cut', /broke off/, 1],
  ['a stream that just ends', { text: 'one two', unfinished: true }, 'model_cut', /broke off|without a finish/, 1],
  [
    'an error within the stream',
    { streamError: { message: 'overloaded', type: 'server_error' } },
    'model_unavailable',
    /overloaded/,
    3,
  ],
];

describe('a failing model server', () => {
  test.each(failures)('%s', async (_, reply, code, message, tries) => {
    await using server = await startOpenAiServer([reply]);
    const chat = new Conversation(runnerAt(server.url).runner);
    const error = await chat.say('hello').then(
      () => null,
      (thrown: unknown) => thrown as Error,
    );
    expect(error).toMatchObject({ name: 'MoiraiError', code });
    expect(error?.message).toMatch(message);
    expect(error?.message).toContain('127.0.0.1');
    expect(error?.message).not.toContain('sk-secret');
    expect(questions(server)).toHaveLength(tries);
  });

  test('that says nothing for too long', async () => {
    await using server = await startOpenAiServer([{ text: 'one two', hangAfter: 1 }]);
    const chat = new Conversation(runnerAt(server.url, { timing: { silenceMs: 100 } }).runner);
    await expect(chat.say('hello')).rejects.toMatchObject({ code: 'model_timeout' });
    expect(chat.transcript.at(-1)).toMatchObject({ role: 'assistant', text: 'one ', data: { partial: true } });
  });

  test('that is not there', async () => {
    const { runner, waits } = runnerAt('http://127.0.0.1:9/v1');
    const chat = new Conversation(runner);
    await expect(chat.say('hello')).rejects.toMatchObject({ code: 'model_unavailable' });
    expect(waits).toEqual([500, 2_000]);
    expect(chat.transcript).toEqual([]);
  });

  test('that recovers is not noticed', async () => {
    await using server = await startOpenAiServer([
      { status: 503 },
      { text: 'x', cutAfter: 0 },
      { status: 429 },
      { text: 'here' },
    ]);
    const chat = new Conversation(runnerAt(server.url).runner);
    expect((await chat.say('hello')).text).toBe('here');
    expect(chat.shownText).toBe('here');
  });

  test('that asks for a wait gets it', async () => {
    await using server = await startOpenAiServer([{ status: 429, headers: { 'retry-after': '7' } }, { text: 'here' }]);
    const { runner, waits } = runnerAt(server.url);
    expect((await new Conversation(runner).say('hello')).text).toBe('here');
    expect(waits).toEqual([7_000]);
  });

  test('that asks for more than a minute does not', async () => {
    await using server = await startOpenAiServer([{ status: 429, headers: { 'retry-after': '61' } }, { text: 'here' }]);
    const { runner, waits } = runnerAt(server.url);
    await expect(new Conversation(runner).say('hello')).rejects.toMatchObject({
      code: 'model_rate_limited',
      details: { retryAfterMs: 61_000 },
    });
    expect(waits).toEqual([]);
  });

  test('leaves the session as it was, so that the next turn works', async () => {
    await using server = await startOpenAiServer([{ status: 400 }, { text: 'fine' }]);
    const chat = new Conversation(runnerAt(server.url).runner);
    await expect(chat.say('a bad word')).rejects.toMatchObject({ code: 'model_refused' });
    expect((await chat.say('hello')).text).toBe('fine');
    expect(questions(server)[1]?.body.messages.slice(1)).toEqual([{ role: 'user', content: 'hello' }]);
  });

  test('does not list its models: the configured one is named', async () => {
    const { runner, logged } = runnerAt('http://127.0.0.1:9/v1');
    expect(await runner.models()).toEqual(['fake-model']);
    expect(logged).toHaveLength(1);
  });
});

test('the models of a server are listed, and the description names model and place', async () => {
  await using server = await startOpenAiServer([]);
  const { runner } = runnerAt(server.url);
  expect(await runner.models()).toEqual(['fake-model', 'fake-model-large']);
  expect(runner.description).toBe(`fake-model at ${new URL(server.url).host} (openai-compatible)`);
});
