import { expect, test } from 'vitest';
import { assistantRow, numbered, toolRow, userRow } from '../../src/agent/transcript.ts';
import { settleDangling } from '../../src/agent/turn.ts';
import type { MessageToAppend } from '../../src/store/transactions/messages.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt } from './conversation.ts';

const calls = [
  { id: 'c1', name: 'remember', args: { fact: 'a' } },
  { id: 'c2', name: 'remember', args: { fact: 'b' } },
];
const cut = [userRow('t1', 'go'), assistantRow('t1', '', { toolCalls: calls })];

test('calls without results are told as unknown and are not run again', async () => {
  await using server = await startOpenAiServer([{ text: 'I will look.' }]);
  const facts: string[] = [];
  const { runner } = runnerAt(server.url, { ports: { remember: async (fact) => void facts.push(fact) } });
  const chat = new Conversation(runner);
  chat.append([...cut, toolRow('t1', calls[0]!, { text: 'Remembered.', ok: true })]);
  await chat.say(null, { note: 'The gateway was restarted. Go on.', turnId: 't1' });
  expect(facts).toEqual([]);
  expect(chat.order).toEqual(['keep tool']);
  expect(chat.roles).toEqual(['user', 'assistant', 'tool', 'tool', 'note', 'assistant']);
  expect(chat.transcript[3]).toMatchObject({
    text: expect.stringContaining('unknown'),
    turnId: 't1',
    data: { toolCallId: 'c2', name: 'remember', ok: false, unknown: true },
  });
  const [, , , first, second] = questions(server)[0]!.body.messages;
  expect(first).toMatchObject({ role: 'tool', tool_call_id: 'c1', content: 'Remembered.' });
  expect(second?.content).toMatch(/not run again[\s\S]*\[The gateway was restarted\. Go on\.\]$/);
});

test('a turn that brings its text again has said it once', async () => {
  await using server = await startOpenAiServer([{ text: 'done' }]);
  const chat = new Conversation(runnerAt(server.url).runner);
  chat.append(cut);
  await chat.say('go', { note: 'after a crash', turnId: 't1' });
  expect(chat.roles).toEqual(['user', 'assistant', 'tool', 'tool', 'note', 'assistant']);
});

test('a reply that was cut is taken up as part of what it answers, and stays there', async () => {
  await using server = await startOpenAiServer([{ text: 'and three' }, { text: 'four' }]);
  const chat = new Conversation(runnerAt(server.url).runner);
  chat.append([userRow('t1', 'count'), assistantRow('t1', 'one two', { partial: true })]);
  await chat.say(null, { turnId: 't1' });
  await chat.say('more');
  const [first, second] = questions(server).map(({ body }) => body.messages.slice(1));
  expect(first).toEqual([{ role: 'user', content: expect.stringMatching(/^count\n\n\[You had begun.*one two\]/) }]);
  expect(second?.slice(0, 1)).toEqual(first);
  expect(second?.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
});

test('only calls at the end of what counts are dangling', () => {
  const rows = (...added: MessageToAppend[]) => numbered([], 's', added);
  expect(settleDangling([])).toEqual([]);
  expect(settleDangling(rows(...cut))).toHaveLength(2);
  expect(settleDangling(rows(...cut, userRow('t2', 'never mind')))).toEqual([]);
  expect(settleDangling(rows(...cut, { role: 'undo', text: '', turnId: null, data: { from: 1 } }))).toEqual([]);
});

test('a turn without text and without anything before it is refused', async () => {
  await using server = await startOpenAiServer([{ text: 'x' }]);
  await expect(new Conversation(runnerAt(server.url).runner).say(null)).rejects.toMatchObject({ code: 'bad_input' });
});
