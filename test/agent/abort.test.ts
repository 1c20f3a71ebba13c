import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import { isRunning, until } from '../cli/cli-fixture.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt, temporaryFolder } from './conversation.ts';

const reason = new MoiraiError('turn_interrupted', 'stopped by a person');

function stopAfter(ms: number): AbortSignal {
  const stop = new AbortController();
  setTimeout(() => stop.abort(reason), ms);
  return stop.signal;
}

test('an abort in the middle of a reply keeps what was said, with what it answers', async () => {
  await using server = await startOpenAiServer([{ text: 'one two three', hangAfter: 2 }, { text: 'again' }]);
  const chat = new Conversation(runnerAt(server.url).runner);
  const stop = new AbortController();
  chat.onShow = () => {
    if (chat.shownText === 'one two ') stop.abort(reason);
  };
  await expect(chat.say('count', { signal: stop.signal })).rejects.toBe(reason);
  expect(chat.transcript.map(({ role, text, data }) => [role, text, data])).toEqual([
    ['user', 'count', null],
    ['assistant', 'one two ', { partial: true }],
  ]);
  await chat.say('go on');
  expect(questions(server)[1]?.body.messages.slice(1)).toEqual([
    { role: 'user', content: 'count' },
    { role: 'assistant', content: 'one two ' },
    { role: 'user', content: 'go on' },
  ]);
});

test('an abort before a word was said keeps what the person wrote', async () => {
  await using server = await startOpenAiServer([{ text: 'x', hangAfter: 0 }]);
  const chat = new Conversation(runnerAt(server.url).runner);
  await expect(chat.say('count', { signal: stopAfter(50) })).rejects.toBe(reason);
  expect(chat.roles).toEqual(['user']);
});

test('an abort that came before the turn asks nobody', async () => {
  await using server = await startOpenAiServer([{ text: 'x' }]);
  const chat = new Conversation(runnerAt(server.url).runner);
  await expect(chat.say('hello', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(questions(server)).toEqual([]);
});

test('an abort while waiting for a slow server to be free ends the wait', async () => {
  await using server = await startOpenAiServer([{ status: 429, headers: { 'retry-after': '30' } }]);
  const { wait } = await import('../../src/agent/model/retry.ts');
  const chat = new Conversation(runnerAt(server.url, { timing: { wait } }).runner);
  await expect(chat.say('hello', { signal: stopAfter(100) })).rejects.toBe(reason);
});

test('a store that hangs does not hold an aborted turn', async () => {
  await using server = await startOpenAiServer([{ text: 'one two', hangAfter: 1 }]);
  const chat = new Conversation(runnerAt(server.url).runner);
  chat.onKeep = () => new Promise(() => undefined);
  await expect(chat.say('count', { signal: stopAfter(100) })).rejects.toBe(reason);
});

test('an abort kills a running command with all it started, and every call gets its row', async () => {
  const workspace = temporaryFolder();
  await using server = await startOpenAiServer([
    {
      toolCalls: [
        { id: 'c1', name: 'run_command', args: { command: 'sleep 60 & echo $! > pid; mv pid started; wait' } },
        { id: 'c2', name: 'run_command', args: { command: 'touch never' } },
      ],
    },
  ]);
  const chat = new Conversation(
    runnerAt(server.url, { agent: { workspace: { folder: workspace, perConversation: false } } }).runner,
  );
  chat.approval = { allowed: true };
  const stop = new AbortController();
  const turn = expect(chat.say('go', { signal: stop.signal })).rejects.toBe(reason);
  await until('it runs', () => existsSync(join(workspace, 'started')));
  stop.abort(reason);
  await turn;
  expect(chat.roles).toEqual(['user', 'assistant', 'tool', 'tool']);
  expect(chat.transcript[2]).toMatchObject({
    text: expect.stringContaining('stopped'),
    data: { ok: false, unknown: true },
  });
  expect(chat.transcript[3]).toMatchObject({ text: expect.stringContaining('not run'), data: { ok: false } });
  const pid = Number(readFileSync(join(workspace, 'started'), 'utf8'));
  await until('the command is gone', () => !isRunning(pid));
  expect(existsSync(join(workspace, 'never'))).toBe(false);
});

test('an abort while the calls are being kept runs none of them, and says so', async () => {
  await using server = await startOpenAiServer([{ toolCalls: [{ name: 'remember', args: { fact: 'x' } }] }]);
  const facts: string[] = [];
  const { runner } = runnerAt(server.url, { ports: { remember: async (fact) => void facts.push(fact) } });
  const chat = new Conversation(runner);
  const stop = new AbortController();
  chat.onKeep = () => stop.abort(reason);
  await expect(chat.say('go', { signal: stop.signal })).rejects.toBe(reason);
  expect(facts).toEqual([]);
  expect(chat.order).toEqual(['keep user,assistant', 'keep tool']);
  expect(chat.transcript[2]?.text).toContain('not run');
});

test('a session that is forgotten takes its commands along', async () => {
  const workspace = temporaryFolder();
  await using server = await startOpenAiServer([
    { toolCalls: [{ name: 'run_command', args: { command: 'touch started; sleep 60' } }] },
    { text: 'it was killed' },
  ]);
  const { runner } = runnerAt(server.url, { agent: { workspace: { folder: workspace, perConversation: false } } });
  const chat = new Conversation(runner);
  chat.approval = { allowed: true };
  const turn = chat.say('go');
  await until('it runs', () => existsSync(join(workspace, 'started')));
  await runner.forget('s1');
  expect((await turn).text).toBe('it was killed');
  expect(chat.transcript[2]?.text).toContain('SIGKILL');
  await runner.close();
});
