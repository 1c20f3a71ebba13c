import { expect, test } from 'vitest';
import { createRunner } from '../../src/agent/create-runner.ts';
import type { ModelConfig } from '../../src/config/config.ts';
import { agentConfig, Conversation, modelConfig } from './conversation.ts';

function runnerFor(model: Partial<ModelConfig>) {
  return createRunner({ model: modelConfig(model), agent: agentConfig(), mcp: { servers: {} } }, {});
}

const offline = () => runnerFor({ provider: 'offline', name: null, apiKey: null });

test('the offline runner says what it is, what it understood and how to get a real model', async () => {
  const chat = new Conversation(offline());
  const report = await chat.say('What is the weather?');
  expect(report.text).toContain('What is the weather?');
  expect(report.text).toContain('offline model');
  expect(report.text).toContain('OPENAI_API_KEY');
  expect(report.model).toBe('offline');
  expect(chat.shownText).toBe(report.text);
  expect(chat.shown.length).toBeGreaterThan(5);
  expect(chat.roles).toEqual(['user', 'assistant']);
  expect(offline().description).toContain('no model is configured');
});

test('it says the same for the same words, repeats on request, and knows its session', async () => {
  const [one, other] = [new Conversation(offline()), new Conversation(offline())];
  expect((await one.say('hello')).text).toBe((await other.say('hello')).text);
  expect((await one.say('say exactly this')).text).toBe('exactly this');
  expect((await one.say('how many messages?')).text).toContain('2 messages');
});

test('it can be stopped, and what it said is kept', async () => {
  const chat = new Conversation(offline());
  const stop = new AbortController();
  chat.onShow = () => {
    if (chat.shown.length === 3) stop.abort(new Error('enough'));
  };
  await expect(chat.say('hello', { signal: stop.signal })).rejects.toThrow('enough');
  expect(chat.transcript.map(({ role, data }) => [role, data])).toEqual([
    ['user', null],
    ['assistant', { partial: true }],
  ]);
});

test('it has one model and nothing to compress', async () => {
  const runner = offline();
  expect(await runner.models()).toEqual(['offline']);
  expect(await new Conversation(runner).compress()).toBeNull();
});

test.each<[Partial<ModelConfig>, RegExp]>([
  [{ apiKey: null }, /^offline/],
  [{ apiKey: 'sk-ant-1' }, /claude.*api\.anthropic\.com \(anthropic\)/],
  [{ apiKey: 'sk-1' }, /gpt.*api\.openai\.com \(openai\)/],
  [{ apiKey: null, baseUrl: 'http://127.0.0.1:1/v1/' }, /the first model at 127\.0\.0\.1:1 \(openai-compatible\)/],
])('auto with %j finds the provider', (model, description) => {
  expect(runnerFor({ provider: 'auto', name: null, ...model }).description).toMatch(description);
});
