import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { ToolPorts } from '../../src/agent/tools/ports.ts';
import type { Asker } from '../../src/agent/tools/tool.ts';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt } from './conversation.ts';

const folder = mkdtempSync(join(tmpdir(), 'moirai-ports-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('tools that need the rest of the gateway ask it in the name of the person', async () => {
  const asked: [string, string, Asker][] = [];
  const ports: ToolPorts = {
    searchSessions: async (text, asker) => {
      asked.push(['search', text, asker]);
      return [{ sessionId: 's0', position: 1, role: 'user', text: 'I like tea', at: 0, turnId: null, data: null }];
    },
    sendMessage: async (target, text, asker) => {
      asked.push([target, text, asker]);
      return 'Sent.';
    },
    delegate: async (task, asker, signal) => {
      asked.push(['delegate', task, asker]);
      return signal.aborted ? 'aborted' : 'the answer is 42';
    },
  };
  await using server = await startOpenAiServer([
    {
      toolCalls: [
        { name: 'search_sessions', args: { text: 'tea' } },
        { name: 'send_message', args: { target: 'telegram:42', text: 'hi' } },
        { name: 'delegate', args: { task: 'compute' } },
      ],
    },
    { text: 'done' },
  ]);
  const chat = new Conversation(runnerAt(server.url, { ports }).runner);
  chat.approval = { allowed: true };
  await chat.say('go');
  // Whoever reads it there did not ask for it.
  expect(chat.asked).toMatchObject([{ tool: 'send_message', action: 'send to telegram:42: hi' }]);
  expect(chat.transcript.filter(({ role }) => role === 'tool').map(({ text }) => text)).toEqual([
    '[1970-01-01T00:00:00.000Z, session s0] user: I like tea',
    'Sent.',
    'the answer is 42',
  ]);
  expect(asked.map(([what, text]) => [what, text])).toEqual([
    ['search', 'tea'],
    ['telegram:42', 'hi'],
    ['delegate', 'compute'],
  ]);
  for (const [, , asker] of asked) {
    expect(asker).toMatchObject({ sessionId: 's1', turnId: 't1', platform: 'api', userId: 'u1' });
  }
});

test('a file is sent by its real path, to other conversations only when that is allowed', async () => {
  const sent: [string, string, string][] = [];
  const ports: ToolPorts = {
    workspaceOf: async () => folder,
    sendFile: async (target, { path, text }) => String(sent.push([target, path, text])),
  };
  writeFileSync(join(folder, 'chart.png'), 'x');
  const calls = [
    { path: 'chart.png' },
    { path: './chart.png', text: 'look', target: 'origin' },
    { path: 'chart.png', target: 'telegram:42' },
    { path: '../outside.txt' },
    { path: 'missing.txt' },
  ];
  await using server = await startOpenAiServer([
    { toolCalls: calls.map((args, i) => ({ id: `c${i}`, name: 'send_file', args })) },
    { text: 'done' },
  ]);
  const chat = new Conversation(runnerAt(server.url, { ports }).runner);
  chat.approval = { allowed: false, reason: 'no' };
  await chat.say('go');
  expect(chat.asked).toMatchObject([{ tool: 'send_file', action: 'send the file chart.png to telegram:42' }]);
  const real = join(realpathSync(folder), 'chart.png');
  expect(sent).toEqual([
    ['origin', real, ''],
    ['origin', real, 'look'],
  ]);
  const told = chat.transcript.filter(({ role }) => role === 'tool').map(({ text }) => text);
  expect(told.slice(3).join('\n')).toMatch(/outside.*\n.*missing\.txt does not exist/);
});

test('sending anywhere but back asks first, to the home channel too', async () => {
  const targets = ['origin', 'local', 'home', ' home ', 'telegram', 'telegram:42'];
  await using server = await startOpenAiServer([
    { toolCalls: targets.map((target, i) => ({ id: `c${i}`, name: 'send_message', args: { target, text: 'hi' } })) },
    { text: 'done' },
  ]);
  const sent: string[] = [];
  const ports: ToolPorts = { sendMessage: async (target) => String(sent.push(target)) };
  const chat = new Conversation(runnerAt(server.url, { ports }).runner);
  chat.approval = { allowed: false, reason: 'no' };
  await chat.say('go');
  expect(chat.asked).toHaveLength(4);
  expect(sent).toEqual(['origin', 'local']);
});
