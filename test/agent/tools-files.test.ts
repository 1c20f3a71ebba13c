import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { listFilesTool, readFileTool, writeFileTool } from '../../src/agent/tools/file-tools.ts';
import type { AgentTool, ToolContext } from '../../src/agent/tools/tool.ts';
import { temporaryFolder } from './conversation.ts';

let home: string;
let workspace: string;
const there = async (): Promise<string> => workspace;
const context: ToolContext = {
  ...{ sessionId: 's1', turnId: 't1', platform: 'api', userId: null },
  signal: new AbortController().signal,
};
const run = (tool: AgentTool, args: unknown) => tool.run(args, context);

beforeEach(() => {
  home = temporaryFolder();
  workspace = join(home, 'workspace');
  mkdirSync(workspace);
  writeFileSync(join(home, 'secret'), 'the secret');
  mkdirSync(join(home, 'workspace-2'));
  writeFileSync(join(home, 'workspace-2', 'secret'), 'the secret');
});

test('a file is written with its folders, listed and read back', async () => {
  expect(await run(writeFileTool(there), { path: 'notes/today.md', text: 'one\ntwo\nthree' })).toContain('13 bytes');
  expect(await run(listFilesTool(there), {})).toBe('notes/');
  expect(await run(listFilesTool(there), { depth: 2 })).toBe('notes/\nnotes/today.md');
  expect(await run(readFileTool(there), { path: 'notes/today.md' })).toBe('one\ntwo\nthree');
  expect(await run(readFileTool(there), { path: 'notes/today.md', first_line: 2, lines: 1 })).toBe('two');
  expect(await run(readFileTool(there), { path: join(workspace, 'notes/today.md') })).toContain('one');
});

test('a workspace that does not exist yet is made', async () => {
  expect(
    await run(
      listFilesTool(async () => join(home, 'fresh')),
      {},
    ),
  ).toBe('The folder is empty.');
});

test.each([
  '../secret',
  '/etc/passwd',
  'a/../../secret',
  '../workspace-2/secret',
  '..',
  'out/secret',
  'door',
  '.\0./secret',
])('nothing outside the workspace is read, written or listed: %j', async (path) => {
  symlinkSync(home, join(workspace, 'out'));
  symlinkSync(join(home, 'secret'), join(workspace, 'door'));
  await expect(run(readFileTool(there), { path })).rejects.toThrow();
  await expect(run(writeFileTool(there), { path, text: 'mine' })).rejects.toThrow();
  await expect(run(listFilesTool(there), { path })).rejects.toThrow();
  expect(readFileSync(join(home, 'secret'), 'utf8')).toBe('the secret');
});

test('a link that leads nowhere yet is not written through', async () => {
  symlinkSync(join(home, 'planted'), join(workspace, 'later'));
  symlinkSync(join(home, 'planted-folder'), join(workspace, 'folder'));
  await expect(run(writeFileTool(there), { path: 'later', text: 'x' })).rejects.toThrow('link');
  await expect(run(writeFileTool(there), { path: 'folder/x', text: 'x' })).rejects.toThrow();
  await expect(
    run(
      readFileTool(async () => home),
      { path: 'planted' },
    ),
  ).rejects.toThrow('does not exist');
});

test('what is no text, no file or too much is refused in words', async () => {
  writeFileSync(join(workspace, 'image'), Buffer.from([1, 0, 2]));
  writeFileSync(join(workspace, 'huge'), Buffer.alloc(9 * 1024 * 1024, 'a'));
  await expect(run(readFileTool(there), { path: 'image' })).rejects.toThrow('not a text file');
  await expect(run(readFileTool(there), { path: '.' })).rejects.toThrow('not a file');
  await expect(run(readFileTool(there), { path: 'huge' })).rejects.toThrow('bytes');
  await expect(run(readFileTool(there), {})).rejects.toThrow('path: ');
  await expect(run(listFilesTool(there), { path: 'image' })).rejects.toThrow('not a folder');
});

test('a long text is shortened in its middle', async () => {
  writeFileSync(join(workspace, 'long'), `start ${'a'.repeat(100_000)} end`);
  const text = await run(readFileTool(there), { path: 'long' });
  expect(text.length).toBeLessThan(33_000);
  expect(text).toMatch(/^start [\s\S]*left out[\s\S]* end$/);
});

test('pipes and sockets are refused at once, for reading and for writing, and hold no thread', async () => {
  execFileSync('mkfifo', [join(workspace, 'pipe')]);
  const server = createServer();
  await new Promise<void>((listening) => server.listen(join(workspace, 'socket'), listening));
  // More than there are threads for files.
  const reads = Array.from({ length: 8 }, () => run(readFileTool(there), { path: 'pipe' }));
  for (const read of await Promise.allSettled(reads)) expect(read).toMatchObject({ status: 'rejected' });
  await expect(run(readFileTool(there), { path: 'pipe' })).rejects.toThrow('is not a file');
  for (const path of ['pipe', 'socket']) {
    await expect(run(writeFileTool(there), { path, text: 'x' })).rejects.toThrow('is not a file');
  }
  await expect(run(readFileTool(there), { path: 'socket' })).rejects.toThrow('is not a file');
  server.close();
}, 10_000);
