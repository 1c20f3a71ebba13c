import { expect, test } from 'vitest';
import { OfflineRunner } from '../../src/agent/offline-runner.ts';
import { startAnthropicServer } from '../fakes/anthropic-server.ts';
import type { RecordedRequest } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt } from './conversation.ts';

const QUESTION = 'what matters here?';

const isQuestion = ({ body }: RecordedRequest): boolean => JSON.stringify(body.messages.at(-1)).includes(QUESTION);

/** Answers turns, after a call of a tool, and the question as told. */
const script =
  (thought: string): ModelScript =>
  (request, index) => {
    if (isQuestion(request)) return { text: thought, toolCalls: [{ name: 'remember', args: { fact: 'no' } }] };
    return index % 2 === 0 ? { toolCalls: [{ name: 'remember', args: { fact: `${index}` } }] } : { text: 'done' };
  };

function readAlready({ raw, body }: RecordedRequest): string {
  const messages = JSON.stringify(body.messages).slice(0, -1);
  return raw.slice(0, raw.indexOf(messages) + messages.length);
}

const about = (chat: Conversation, signal = new AbortController().signal) => ({
  ...{ sessionId: chat.sessionId, transcript: chat.transcript, model: null, about: null, signal },
});

test.each([
  ['an OpenAI-compatible', startOpenAiServer, 'openai-compatible'],
  ['an Anthropic', startAnthropicServer, 'anthropic'],
] as const)('what %s server is asked beside a conversation begins with its last prompt', async (_, start, provider) => {
  await using server = await start(script('a thought'));
  const kept: string[] = [];
  const ports = { remember: async (fact: string) => void kept.push(fact) };
  const { runner } = runnerAt(server.url, { model: { provider }, ports });
  const chat = new Conversation(runner);
  await chat.say('one');
  await chat.say('two');
  const rows = chat.transcript.length;
  expect(await runner.askAbout(about(chat), QUESTION)).toBe('a thought');
  const asked = questions(server);
  expect(asked.at(-1)!.raw.startsWith(readAlready(asked.at(-2)!))).toBe(true);
  expect(asked.at(-1)!.body.tools).toEqual(asked.at(-2)!.body.tools);
  // The call that came with the thought was not made.
  expect(kept).toEqual(['0', '2']);
  await chat.say('three');
  const next = questions(server).filter((request) => !isQuestion(request));
  expect(next.at(-2)!.raw.startsWith(readAlready(next.at(-3)!))).toBe(true);
  expect(chat.transcript.slice(0, rows).map(({ text }) => text)).not.toContain(QUESTION);
});

test('a thought that does not end is cut off', async () => {
  await using server = await startOpenAiServer(script('on and on '.repeat(5000)));
  const { runner } = runnerAt(server.url, { ports: { remember: async () => undefined } });
  const chat = new Conversation(runner);
  await chat.say('one');
  expect((await runner.askAbout(about(chat), QUESTION))?.length).toBe(8000);
});

test('nothing is asked about nothing, nor where it does not fit', async () => {
  const tooLong = {
    status: 400,
    error: { message: 'maximum context length exceeded', code: 'context_length_exceeded' },
  };
  await using server = await startOpenAiServer((request) => (isQuestion(request) ? tooLong : { text: 'done' }));
  const { runner } = runnerAt(server.url);
  const chat = new Conversation(runner);
  expect(await runner.askAbout(about(chat), QUESTION)).toBeNull();
  expect(questions(server)).toEqual([]);
  await chat.say('one');
  expect(await runner.askAbout(about(chat), QUESTION)).toBeNull();
  const narrow = runnerAt(server.url, { model: { contextWindow: 100 } }).runner;
  const before = questions(server).length;
  expect(await narrow.askAbout(about(chat), QUESTION)).toBeNull();
  expect(questions(server)).toHaveLength(before);
  expect(await new OfflineRunner().askAbout()).toBeNull();
});

test('an abort is heard at once', async () => {
  await using server = await startOpenAiServer((request) => ({
    text: 'done',
    beforeMs: isQuestion(request) ? 60_000 : 0,
  }));
  const { runner } = runnerAt(server.url);
  const chat = new Conversation(runner);
  await chat.say('one');
  const abort = new AbortController();
  const thinking = runner.askAbout(about(chat, abort.signal), QUESTION);
  const reason = new TypeError('enough');
  setTimeout(() => abort.abort(reason), 50);
  await expect(thinking).rejects.toBe(reason);
});
