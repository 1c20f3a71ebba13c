import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import type { AgentRunner } from '../../src/agent/runner.ts';
import type { McpServerConfig } from '../../src/config/config.ts';
import { startMcpServer } from '../fakes/mcp-server.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt } from './conversation.ts';

const script = fileURLToPath(new URL('../fakes/mcp-server.ts', import.meta.url));
const none = { env: {}, url: null, headers: {}, allowTools: ['fail', 'crash'] };
const calculator: McpServerConfig = { command: process.execPath, args: [script], ...none };
const dead: McpServerConfig = { command: '/no/such/program', args: [], ...none };
const unreachable: McpServerConfig = { command: null, args: [], ...none, url: 'http://127.0.0.1:9/mcp' };

let runner: AgentRunner | null = null;
afterEach(() => runner?.close());

const namesOf = (tools: readonly Record<string, unknown>[] | undefined) =>
  (tools ?? []).map((tool) => (tool.function as { name: string }).name);

test('a tool of an MCP server is offered under its name and works', async () => {
  await using server = await startOpenAiServer([
    {
      toolCalls: [
        { name: 'calc__add', args: { a: 2, b: 40 } },
        { name: 'calc__fail', args: {} },
      ],
    },
    { text: '42' },
  ]);
  const made = runnerAt(server.url, { mcp: { calc: calculator } });
  runner = made.runner;
  const chat = new Conversation(runner);
  await chat.say('2 + 40?');
  const offered = namesOf(questions(server)[0]?.body.tools);
  expect(offered).toEqual(expect.arrayContaining(['calc__add', 'calc__fail', 'read_file', 'run_command']));
  expect(offered).toEqual(offered.toSorted());
  expect(chat.transcript.filter(({ role }) => role === 'tool').map(({ text, data }) => [text, data?.ok])).toEqual([
    ['42', true],
    ['It failed: it always fails', false],
  ]);
});

test('a server behind an address works as well, and gets its headers', async () => {
  await using calc = await startMcpServer();
  await using server = await startOpenAiServer([
    { toolCalls: [{ name: 'calc__add', args: { a: 1, b: 2 } }] },
    { text: 'three' },
  ]);
  const config = { ...unreachable, url: `${calc.url}/mcp`, headers: { authorization: 'Bearer abc' } };
  runner = runnerAt(server.url, { mcp: { calc: config } }).runner;
  const chat = new Conversation(runner);
  await chat.say('1 + 2?');
  expect(chat.transcript[2]).toMatchObject({ text: '3', data: { ok: true } });
  expect(calc.requests.every(({ headers }) => headers.authorization === 'Bearer abc')).toBe(true);
});

test('servers that are dead are left out and told in the log; the turn goes on', async () => {
  await using server = await startOpenAiServer([{ text: 'still here' }]);
  const made = runnerAt(server.url, { mcp: { dead, unreachable, calc: calculator } });
  runner = made.runner;
  const chat = new Conversation(runner);
  expect((await chat.say('hello')).text).toBe('still here');
  expect(namesOf(questions(server)[0]?.body.tools)).toContain('calc__add');
  expect(made.logged.toSorted()).toEqual([
    'an MCP server is not available: dead',
    'an MCP server is not available: unreachable',
  ]);
  await chat.say('again');
  expect(made.logged).toHaveLength(2);
});

test('a server that dies in the middle of a call fails the call, not the turn, and is left out afterwards', async () => {
  await using server = await startOpenAiServer([
    { toolCalls: [{ name: 'calc__crash', args: {} }] },
    { text: 'It broke.' },
  ]);
  const made = runnerAt(server.url, { mcp: { calc: calculator } });
  runner = made.runner;
  const chat = new Conversation(runner);
  expect((await chat.say('crash')).text).toBe('It broke.');
  expect(chat.transcript[2]?.data?.ok).toBe(false);
  expect((await chat.say('and now?')).text).toBe('It broke.');
  expect(namesOf(questions(server).at(-1)?.body.tools)).not.toContain('calc__add');
});

test('tools whose port is missing are not offered', async () => {
  await using server = await startOpenAiServer([{ text: 'x' }]);
  runner = runnerAt(server.url, { ports: { searchSessions: async () => [] } }).runner;
  await new Conversation(runner).say('hello');
  expect(namesOf(questions(server)[0]?.body.tools)).toEqual([
    ...['fetch_url', 'list_files', 'read_file', 'run_command', 'search_sessions', 'write_file'],
  ]);
});

describe('a tool of an MCP server', () => {
  const calls = ['add', 'fail', 'erase'].map((name) => ({ name: `calc__${name}`, args: { a: 1, b: 2 } }));

  async function askedFor(allowTools: readonly string[]): Promise<{ asked: string[]; results: string[] }> {
    await using server = await startOpenAiServer([{ toolCalls: calls }, { text: 'Done.' }]);
    runner = runnerAt(server.url, { mcp: { calc: { ...calculator, allowTools } } }).runner;
    const chat = new Conversation(runner);
    await chat.say('do it all');
    const results = chat.transcript.filter(({ role }) => role === 'tool').map(({ text }) => text);
    return { asked: chat.asked.map(({ action }) => action), results };
  }

  test('runs without asking only if its server says that it only reads', async () => {
    const { asked, results } = await askedFor([]);
    expect(asked).toEqual(['fail {"a":1,"b":2}', 'erase {"a":1,"b":2}']);
    expect(results).toEqual(['3', expect.stringContaining('not run'), expect.stringContaining('not run')]);
  });

  test('runs without asking if the configuration names it, or all of its server', async () => {
    expect((await askedFor(['erase'])).asked).toEqual(['fail {"a":1,"b":2}']);
    expect((await askedFor(['*'])).results).toEqual(['3', 'It failed: it always fails', 'erased']);
  });
});
