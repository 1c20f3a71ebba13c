import { expect, test } from 'vitest';
import type { ToolPorts } from '../../src/agent/tools/ports.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt } from './conversation.ts';

const remembering = (order: string[]): ToolPorts => ({
  remember: async (fact) => void order.push(`remember ${fact}`),
});

test('a reply is streamed in pieces and comes back as rows that are not kept yet', async () => {
  await using server = await startOpenAiServer([{ text: 'Hello there, friend', usage: { input: 12, output: 3 } }]);
  const chat = new Conversation(runnerAt(server.url).runner);
  const report = await chat.say('hello');
  expect(report).toMatchObject({ text: 'Hello there, friend', model: 'fake-model', compressed: null });
  expect(report.usage).toEqual({ input: 12, output: 3 });
  expect(report.messages.map(({ role, text }) => [role, text])).toEqual([
    ['user', 'hello'],
    ['assistant', 'Hello there, friend'],
  ]);
  expect(chat.shown.filter(({ type }) => type === 'text')).toHaveLength(3);
  expect(chat.order).toEqual([]);
});

test('reasoning is shown and not said', async () => {
  await using server = await startOpenAiServer([{ reasoning: 'hm', text: 'yes' }]);
  const chat = new Conversation(runnerAt(server.url).runner);
  expect((await chat.say('well?')).text).toBe('yes');
  expect(chat.shown).toContainEqual({ type: 'reasoning', text: 'hm' });
});

test('a tool call is kept before the tool runs, and its result before the model goes on', async () => {
  const script: ModelScript = [
    { text: 'One moment.', toolCalls: [{ id: 'c1', name: 'remember', args: { fact: 'likes tea' } }] },
    { text: 'Noted.' },
  ];
  await using server = await startOpenAiServer(script);
  const order: string[] = [];
  const chat = new Conversation(runnerAt(server.url, { ports: remembering(order) }).runner);
  chat.onKeep = (rows) => void order.push(`keep ${rows.map(({ role }) => role).join(',')}`);
  const report = await chat.say('I like tea');
  expect(order).toEqual(['keep user,assistant', 'remember likes tea', 'keep tool']);
  expect(report.messages.map(({ role }) => role)).toEqual(['assistant']);
  expect(report.usage).toEqual({ input: 20, output: 10 });
  expect(chat.transcript.map(({ role, text }) => [role, text])).toEqual([
    ['user', 'I like tea'],
    ['assistant', 'One moment.'],
    ['tool', 'Remembered.'],
    ['assistant', 'Noted.'],
  ]);
  expect(chat.transcript[1]?.data).toMatchObject({
    toolCalls: [{ id: 'c1', name: 'remember', args: { fact: 'likes tea' } }],
  });
  expect(chat.transcript[2]?.data).toEqual({ toolCallId: 'c1', name: 'remember', ok: true });
  expect(chat.shown.filter(({ type }) => type.startsWith('tool') || type === 'step')).toEqual([
    { type: 'step', iteration: 1, tools: ['remember'] },
    { type: 'tool', state: 'start', id: 'c1', name: 'remember', args: { fact: 'likes tea' } },
    { type: 'tool', state: 'end', id: 'c1', name: 'remember', ok: true, output: 'Remembered.' },
    { type: 'step', iteration: 2, tools: [] },
  ]);
  expect(questions(server)[1]?.body.messages.at(-1)).toMatchObject({ role: 'tool', content: 'Remembered.' });
});

test('a tool that throws, one that does not exist and arguments that are wrong are told to the model, which goes on', async () => {
  await using server = await startOpenAiServer([
    {
      toolCalls: [
        { id: 'c1', name: 'remember', args: { fact: 'x' } },
        { id: 'c2', name: 'fly', args: {} },
        { id: 'c3', name: 'remember', args: { fact: 5 } },
        { id: 'c4', name: 'remember', args: '{"fact": "brok' },
      ],
    },
    { text: 'So be it.' },
  ]);
  const ports: ToolPorts = { remember: async () => Promise.reject(new TypeError('the memory is full')) };
  const chat = new Conversation(runnerAt(server.url, { ports }).runner);
  expect((await chat.say('go')).text).toBe('So be it.');
  const tools = chat.transcript.filter(({ role }) => role === 'tool');
  expect(tools.map(({ data }) => data?.ok)).toEqual([false, false, false, false]);
  expect(tools.map(({ text }) => text)).toEqual([
    'It failed: the memory is full',
    'There is no tool named fly.',
    expect.stringContaining('fact: '),
    expect.stringContaining('the arguments are not right'),
  ]);
});

test('calls that are safe together run together, the others one after the other', async () => {
  const running: string[] = [];
  let most = 0;
  const slowly = async (name: string): Promise<string> => {
    running.push(name);
    most = Math.max(most, running.length);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running.splice(running.indexOf(name), 1);
    return name;
  };
  const ports: ToolPorts = {
    delegate: (task) => slowly(task),
    sendMessage: async (target) => {
      expect(running).toEqual([]);
      return slowly(target);
    },
  };
  await using server = await startOpenAiServer([
    {
      toolCalls: [
        { id: 'a', name: 'delegate', args: { task: 'a' } },
        { id: 'b', name: 'delegate', args: { task: 'b' } },
        { id: 'c', name: 'send_message', args: { target: 'local', text: 'x' } },
        { id: 'd', name: 'send_message', args: { target: 'origin', text: 'x' } },
      ],
    },
    { text: 'done' },
  ]);
  const chat = new Conversation(runnerAt(server.url, { ports }).runner);
  await chat.say('go');
  expect(most).toBe(2);
  expect(chat.order).toEqual(['keep user,assistant', 'keep tool,tool', 'keep tool', 'keep tool']);
  expect(chat.transcript.filter(({ role }) => role === 'tool').map(({ text }) => text)).toEqual([
    ...['a', 'b', 'local', 'origin'],
  ]);
});

test('what people say meanwhile is taken in at the next step, behind the results', async () => {
  await using server = await startOpenAiServer([
    { toolCalls: [{ name: 'remember', args: { fact: 'x' } }] },
    { text: 'In blue, then.' },
  ]);
  const chat = new Conversation(runnerAt(server.url, { ports: remembering([]) }).runner);
  chat.onKeep = () => {
    if (chat.order.length === 1) chat.steering.push('make it blue');
  };
  await chat.say('paint it');
  expect(chat.roles).toEqual(['user', 'assistant', 'tool', 'user', 'assistant']);
  expect(questions(server)[1]?.body.messages.at(-1)).toEqual({ role: 'user', content: 'make it blue' });
});

test('a turn that never comes to an answer stops with its steps kept', async () => {
  await using server = await startOpenAiServer((_, i) => ({
    toolCalls: [{ id: `c${i}`, name: 'remember', args: { fact: 'x' } }],
  }));
  const { runner } = runnerAt(server.url, { agent: { maxSteps: 3 }, ports: remembering([]) });
  const chat = new Conversation(runner);
  await expect(chat.say('go')).rejects.toMatchObject({ code: 'too_many_steps' });
  expect(chat.roles).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant', 'tool']);
});

test('a conversation may ask for another model, and without any name the first of the server answers', async () => {
  await using server = await startOpenAiServer([{ text: 'ok' }]);
  const chat = new Conversation(runnerAt(server.url, { model: { name: null } }).runner);
  expect((await chat.say('a')).model).toBe('fake-model');
  expect((await chat.say('b', { model: 'fake-model-large' })).model).toBe('fake-model-large');
  expect(questions(server).map(({ body }) => body.model)).toEqual(['fake-model', 'fake-model-large']);
});

test('a row that cannot be kept ends the turn before the tool runs', async () => {
  const order: string[] = [];
  await using server = await startOpenAiServer([{ toolCalls: [{ name: 'remember', args: { fact: 'x' } }] }]);
  const chat = new Conversation(runnerAt(server.url, { ports: remembering(order) }).runner);
  chat.onKeep = () => Promise.reject(new Error('fenced'));
  await expect(chat.say('go')).rejects.toThrow('fenced');
  expect(order).toEqual([]);
});
