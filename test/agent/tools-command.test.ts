import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CommandRunner } from '../../src/agent/tools/run-command.ts';
import { isRunning, until } from '../cli/cli-fixture.ts';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt, temporaryFolder } from './conversation.ts';

const OUTSIDE = { sandbox: 'off', sandboxNetwork: false } as const;
const signal = new AbortController().signal;
const context = { sessionId: 's1', turnId: 't1', platform: 'api', userId: null, signal };

function runner(allowCommands: string[] = [], environment: Record<string, string> = {}) {
  const workspace = temporaryFolder();
  const commands = new CommandRunner({ workspaceOf: async () => workspace, allowCommands, environment, ...OUTSIDE });
  return { workspace, commands };
}

test('a command runs in the workspace and tells its code and output', async () => {
  const { commands, workspace } = runner();
  const text = await commands.tool.run({ command: 'pwd; echo oops >&2; exit 3' }, context);
  expect(text).toContain('Exit code 3.');
  expect(text).toContain(workspace.split('/').at(-1));
  expect(text).toContain('oops');
});

test('it sees nothing secret of the environment', async () => {
  const { commands } = runner([], { OPENAI_API_KEY: 'sk-1', MY_TOKEN: 'x', LANG: 'C.UTF-8', PATH: '/usr/bin:/bin' });
  const text = await commands.tool.run({ command: 'env' }, context);
  expect(text).toContain('LANG=C.UTF-8');
  expect(text).not.toMatch(/sk-1|MY_TOKEN/);
});

test('only a plain command that a pattern describes whole runs unasked', () => {
  const { tool } = runner(['ls **', 'git', 'git status', 'npm test', '']).commands;
  const asks = (command: string) => tool.dangerous({ command });
  expect(asks('ls -la')).toBeNull();
  expect(asks('  git status')).toBeNull();
  expect(asks('npm  test')).toBeNull();
  for (const command of [
    'rm -rf x',
    'npm install',
    'npm test --all',
    "git -c alias.x='!id' x",
    'git -c core.pager=id log',
    'lsof',
    'ls; rm x',
    'ls && rm x',
    'ls | sh',
    'ls $(rm x)',
    'ls `rm x`',
    'ls > x',
    'ls\nrm x',
  ]) {
    expect(asks(command)).toBe(command);
  }
});

test('too long, too much and left behind: all come to an end', async () => {
  const { commands } = runner();
  expect(await commands.tool.run({ command: 'sleep 60', timeout_seconds: 1 }, context)).toContain('was killed');
  const much = await commands.tool.run({ command: 'yes | head -c 3000000' }, context);
  expect(much.length).toBeLessThan(33_000);
  expect(much).toContain('left out');
  const left = await commands.tool.run({ command: 'sleep 60 & echo process $!' }, context);
  const pid = Number(/process (\d+)/.exec(left)?.[1]);
  await until('what was left behind is gone', () => !isRunning(pid));
});

test('a command dies with the gateway, also when that is killed', async () => {
  const workspace = temporaryFolder();
  const command = 'sleep 60 & echo $$ $! > pids; mv pids started; wait';
  const script = fileURLToPath(new URL('./processes/run-command.ts', import.meta.url));
  const gateway = spawn(process.execPath, [script, workspace, command], { stdio: 'ignore' });
  await until('it runs', () => existsSync(join(workspace, 'started')));
  const pids = readFileSync(join(workspace, 'started'), 'utf8').trim().split(' ').map(Number);
  expect(pids.map(isRunning)).toEqual([true, true]);
  gateway.kill('SIGKILL');
  await until('both are gone', () => !pids.some(isRunning));
});

test('an approval that nobody gives is a no: the command does not run, and the model is told', async () => {
  const workspace = temporaryFolder();
  await using server = await startOpenAiServer([
    { toolCalls: [{ name: 'run_command', args: { command: 'touch made' } }] },
    { text: 'Then not.' },
  ]);
  const chat = new Conversation(
    runnerAt(server.url, { agent: { workspace: { folder: workspace, perConversation: false } } }).runner,
  );
  expect((await chat.say('make it')).text).toBe('Then not.');
  expect(chat.asked).toEqual([{ tool: 'run_command', action: 'touch made', args: { command: 'touch made' } }]);
  expect(chat.order).toEqual(['keep user,assistant', 'approve', 'keep tool']);
  expect(chat.transcript[2]).toMatchObject({ text: 'This was not run: nobody answered in time', data: { ok: false } });
  expect(existsSync(join(workspace, 'made'))).toBe(false);
});

test('an allowed command runs', async () => {
  const workspace = temporaryFolder();
  await using server = await startOpenAiServer([
    { toolCalls: [{ name: 'run_command', args: { command: 'touch made' } }] },
    { text: 'Made.' },
  ]);
  const chat = new Conversation(
    runnerAt(server.url, {
      agent: { workspace: { folder: workspace, perConversation: false }, allowCommands: ['touch *'] },
    }).runner,
  );
  await chat.say('make it');
  expect(chat.asked).toEqual([]);
  expect(existsSync(join(workspace, 'made'))).toBe(true);
});
