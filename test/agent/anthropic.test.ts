import { expect, test } from 'vitest';
import { startAnthropicServer } from '../fakes/anthropic-server.ts';
import type { ScriptedReply } from '../fakes/model-script.ts';
import { Conversation, runnerAt } from './conversation.ts';

const anthropic = { provider: 'anthropic', name: 'claude-sonnet-4-5', apiKey: 'sk-ant-secret' } as const;

test('a turn with a tool works on the messages API', async () => {
  await using server = await startAnthropicServer([
    { text: 'Let me note that.', toolCalls: [{ id: 'toolu_1', name: 'remember', args: { fact: 'tea' } }] },
    { text: 'Noted.', usage: { input: 30, output: 2 } },
  ]);
  const { runner } = runnerAt(server.url, { model: anthropic, ports: { remember: async () => undefined } });
  const chat = new Conversation(runner);
  const report = await chat.say('I like tea', { note: 'first visit' });
  expect(report).toMatchObject({ text: 'Noted.', model: 'claude-sonnet-4-5', usage: { input: 40, output: 7 } });
  expect(chat.shownText).toBe('Let me note that.Noted.');
  expect(chat.roles).toEqual(['user', 'assistant', 'tool', 'assistant']);
  const [first, second] = server.requests;
  expect(first?.headers['x-api-key']).toBe('sk-ant-secret');
  expect(JSON.stringify(first?.body.system)).toContain('Moirai');
  expect(first?.body.cache_control).toEqual({ type: 'ephemeral' });
  expect(JSON.stringify(second?.body.messages.at(-1))).toMatch(/"tool_use_id":"toolu_1".*Remembered\./);
  expect(await runner.models()).toEqual(['claude-fake']);
});

const failures: [string, ScriptedReply, string][] = [
  ['401', { status: 401, error: { type: 'authentication_error', message: 'invalid x-api-key' } }, 'model_unauthorized'],
  ['404', { status: 404, error: { type: 'not_found_error', message: 'model: claude-x' } }, 'model_unknown'],
  ['429', { status: 429, error: { type: 'rate_limit_error', message: 'slow' } }, 'model_rate_limited'],
  ['529', { status: 529, error: { type: 'overloaded_error', message: 'Overloaded' } }, 'model_unavailable'],
  [
    'a long prompt',
    { status: 400, error: { type: 'invalid_request_error', message: 'prompt is too long: 9 tokens' } },
    'model_overflow',
  ],
  ['400', { status: 400, error: { type: 'invalid_request_error', message: 'no' } }, 'model_refused'],
  ['a cut stream', { text: 'one two three', cutAfter: 2 }, 'model_cut'],
  ['a stream that just ends', { text: 'one two', unfinished: true }, 'model_cut'],
  ['an error in the stream', { streamError: { type: 'overloaded_error', message: 'Overloaded' } }, 'model_unavailable'],
];

test.each(failures)('%s is told by its code', async (_, reply, code) => {
  await using server = await startAnthropicServer([reply]);
  const { runner } = runnerAt(server.url, { model: anthropic });
  await expect(new Conversation(runner).say('hello')).rejects.toMatchObject({ code });
});
