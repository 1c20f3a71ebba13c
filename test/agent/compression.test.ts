import { expect, test } from 'vitest';
import type { RecordedRequest } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt } from './conversation.ts';

const isSummaryRequest = ({ body }: RecordedRequest): boolean =>
  String(body.messages.at(-1)?.content).includes('Write a summary');

const scripted: ModelScript = (request, i) =>
  isSummaryRequest(request) ? { text: 'SUMMARY: they talked.' } : { text: `answer ${i} ${'word '.repeat(200)}` };

const contents = ({ body }: RecordedRequest) => body.messages.map((message) => JSON.stringify(message));

test('a conversation that fills the window is summarised in the same session, and goes on', async () => {
  await using server = await startOpenAiServer(scripted);
  const chat = new Conversation(runnerAt(server.url, { model: { contextWindow: 4_000 } }).runner);
  let compressed = null;
  for (let turn = 1; compressed === null; turn += 1) {
    expect(turn).toBeLessThan(30);
    ({ compressed } = await chat.say(`question ${turn} ${'x'.repeat(300)}`));
  }
  expect(compressed.afterTokens).toBeLessThan(compressed.beforeTokens);
  expect(compressed.count).toBeGreaterThanOrEqual(4);
  const summary = chat.transcript.find(({ role }) => role === 'summary');
  expect(summary).toMatchObject({ sessionId: 's1', text: 'SUMMARY: they talked.', data: { upTo: compressed.count } });

  const sent = questions(server);
  const at = sent.findIndex(isSummaryRequest);
  // The request for the summary begins as the requests before it did.
  expect(contents(sent[at - 1]!).slice(0, compressed.count + 1)).toEqual(
    contents(sent[at]!).slice(0, compressed.count + 1),
  );
  expect(JSON.stringify(sent[at]!.body.tools)).toBe(JSON.stringify(sent[at - 1]!.body.tools));
  // What follows begins with the summary and keeps its beginning again.
  expect(sent[at + 1]!.body.messages[1]?.content).toContain('SUMMARY: they talked.');
  expect(sent[at + 1]!.body.messages[0]).toEqual(sent[0]!.body.messages[0]);
  await chat.say('and now?');
  const [before, after] = questions(server).slice(-2).map(contents);
  expect(after!.slice(0, before!.length)).toEqual(before);
});

test('what is sent afterwards has the last turns word for word and nothing of the old ones', async () => {
  await using server = await startOpenAiServer(scripted);
  const chat = new Conversation(runnerAt(server.url).runner);
  for (let turn = 1; turn <= 6; turn += 1) await chat.say(`question ${turn}`);
  expect(await chat.compress()).toMatchObject({ count: 6 });
  expect(chat.roles.at(-1)).toBe('summary');
  await chat.say('question 7');
  const last = JSON.stringify(questions(server).at(-1)?.body.messages);
  expect(last).not.toMatch(/question [123]\b/);
  for (const n of [4, 5, 6, 7]) expect(last).toContain(`question ${n}`);
});

test('there is nothing to gain from a short conversation', async () => {
  await using server = await startOpenAiServer(scripted);
  const chat = new Conversation(runnerAt(server.url).runner);
  await chat.say('hello');
  expect(await chat.compress()).toBeNull();
  expect(chat.roles).toEqual(['user', 'assistant']);
});

test('a server that finds it too long makes room once, then it works', async () => {
  let refused = 0;
  await using server = await startOpenAiServer((request, i) => {
    if (isSummaryRequest(request) || request.body.messages.length < 9) return { text: `fine ${i}` };
    refused += 1;
    return { status: 400, error: { message: 'too long', code: 'context_length_exceeded' } };
  });
  const chat = new Conversation(runnerAt(server.url).runner);
  for (let turn = 1; turn <= 4; turn += 1) await chat.say(`question ${turn}`);
  const report = await chat.say('question 5');
  expect(report.compressed).not.toBeNull();
  expect(report.text).toMatch(/^fine/);
  expect(refused).toBe(1);
});

test('one row that is too long by itself does not make the session unusable', async () => {
  await using server = await startOpenAiServer((request) =>
    request.raw.length > 20_000
      ? { status: 400, error: { message: 'prompt is too long' } }
      : { text: isSummaryRequest(request) ? 'SUMMARY: a long text' : 'fine' },
  );
  const chat = new Conversation(runnerAt(server.url).runner);
  // As a gateway leaves it behind when the turn failed.
  chat.append([{ role: 'user', text: 'x'.repeat(50_000), turnId: 't0' }]);
  expect((await chat.say('hello')).text).toBe('fine');
  expect(questions(server).at(-1)?.body.messages.slice(1)).toEqual([
    { role: 'user', content: expect.stringContaining('SUMMARY: a long text') },
    { role: 'user', content: 'hello' },
  ]);
});

test('a long turn makes room in its middle, between steps', async () => {
  await using server = await startOpenAiServer((request, i) => {
    if (isSummaryRequest(request)) return { text: 'SUMMARY of steps' };
    if (i > 12) return { text: 'finished' };
    return { toolCalls: [{ id: `c${i}`, name: 'delegate', args: { task: 'go' } }] };
  });
  const ports = { delegate: async () => 'result '.repeat(200) };
  const { runner } = runnerAt(server.url, { model: { contextWindow: 5_000 }, agent: { maxSteps: 20 }, ports });
  const chat = new Conversation(runner);
  const report = await chat.say('work hard');
  expect(report.text).toBe('finished');
  expect(report.compressed?.count).toBeGreaterThanOrEqual(4);
  expect(chat.roles).toContain('summary');
});

test('a summary that cannot be made does not end the turn', async () => {
  await using server = await startOpenAiServer((request, i) =>
    isSummaryRequest(request) ? { status: 400 } : { text: `answer ${i} ${'word '.repeat(300)}` },
  );
  const { runner, logged } = runnerAt(server.url, { model: { contextWindow: 3_000 } });
  const chat = new Conversation(runner);
  for (let turn = 1; turn <= 8; turn += 1) await chat.say(`question ${turn}`);
  expect(logged).toContain('no summary could be made');
  expect(chat.roles).not.toContain('summary');
});

test("the server's own count decides when it is higher than the guess", async () => {
  await using server = await startOpenAiServer((request) =>
    isSummaryRequest(request) ? { text: 'SUMMARY' } : { text: 'short', usage: { input: 120_000, output: 10 } },
  );
  const chat = new Conversation(runnerAt(server.url).runner);
  for (let turn = 1; turn <= 5; turn += 1) await chat.say(`question ${turn}`);
  expect(chat.roles.filter((role) => role === 'summary').length).toBeGreaterThanOrEqual(1);
});
