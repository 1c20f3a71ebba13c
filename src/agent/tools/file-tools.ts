import { constants } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { type AgentTool, bounded, defineTool } from './tool.ts';
import { existingPath, rootOf, shownPath, type WorkspaceOf, writablePath } from './workspace.ts';

const MAX_BYTES = 8 * 1024 * 1024;

const readSchema = z.object({
  path: z.string().min(1).describe('Path in the workspace'),
  first_line: z.int().min(1).optional().describe('Line to begin with, 1 unless given'),
  lines: z.int().min(1).max(5_000).optional().describe('How many lines, all unless given'),
});

export function readFileTool(workspaceOf: WorkspaceOf): AgentTool {
  return defineTool({
    name: 'read_file',
    description: 'Reads a text file of the workspace.',
    schema: readSchema,
    parallelSafe: true,
    async run({ path, first_line: first = 1, lines }, asker) {
      const text = await readText(await existingPath(await workspaceOf(asker), path), path);
      if (first === 1 && lines === undefined) return bounded(text);
      const all = text.split('\n');
      return bounded(all.slice(first - 1, lines === undefined ? undefined : first - 1 + lines).join('\n'));
    },
  });
}

async function readText(real: string, path: string): Promise<string> {
  await using file = await openFile(real, path, constants.O_RDONLY);
  const stats = await file.stat();
  if (stats.size > MAX_BYTES)
    throw new MoiraiError('tool_failed', `${path} has ${stats.size} bytes, more than ${MAX_BYTES}`);
  const bytes = await file.readFile();
  if (bytes.includes(0)) throw new MoiraiError('tool_failed', `${path} is not a text file`);
  return bytes.toString('utf8');
}

/**
 * Opens an ordinary file and nothing else. It never waits: a pipe without a partner would hold a thread of the few that
 * do all of a process's reading and writing, until somebody else opens it.
 */
async function openFile(real: string, path: string, flags: number): Promise<FileHandle> {
  const file = await open(real, flags | constants.O_NONBLOCK, 0o644).catch((error: unknown) => {
    throw new MoiraiError('tool_failed', `${path} cannot be opened: ${faultOf(error)}`, { cause: error });
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new MoiraiError('tool_failed', `${path} is not a file`);
}

const MAX_CHARACTERS = 4 * 1024 * 1024;

const writeSchema = z.object({
  path: z.string().min(1).describe('Path in the workspace; missing folders are made'),
  text: z.string().max(MAX_CHARACTERS).describe('The whole new content'),
});

export function writeFileTool(workspaceOf: WorkspaceOf): AgentTool {
  return defineTool({
    name: 'write_file',
    description: 'Writes a text file of the workspace, replacing what was there.',
    schema: writeSchema,
    async run({ path, text }, asker) {
      const real = await writablePath(await workspaceOf(asker), path);
      // No link is followed at the last step: between the judgement and the write it may have come to be.
      await using file = await openFile(real, path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW);
      await file.truncate(0);
      await file.writeFile(text);
      return `Wrote ${Buffer.byteLength(text)} bytes to ${path}.`;
    },
  });
}

function faultOf(error: unknown): string {
  const { code } = error as { code?: string };
  if (code === 'ELOOP') return 'it is a link';
  if (code === 'EISDIR') return 'it is a folder';
  if (code === 'ENXIO') return 'it is not a file';
  return code ?? String(error);
}

const MAX_ENTRIES = 500;

const listSchema = z.object({
  path: z.string().optional().describe('Folder in the workspace, the workspace itself unless given'),
  depth: z.int().min(1).max(5).optional().describe('How many levels of folders, 1 unless given'),
});

export function listFilesTool(workspaceOf: WorkspaceOf): AgentTool {
  return defineTool({
    name: 'list_files',
    description: 'Lists files and folders of the workspace; folders end with a slash.',
    schema: listSchema,
    parallelSafe: true,
    async run({ path = '.', depth = 1 }, asker) {
      const workspace = await workspaceOf(asker);
      const folder = await existingPath(workspace, path);
      if (!(await stat(folder)).isDirectory()) throw new MoiraiError('tool_failed', `${path} is not a folder`);
      const lines = await listing(await rootOf(workspace), folder, depth, []);
      if (lines.length === 0) return 'The folder is empty.';
      if (lines.length > MAX_ENTRIES) return [...lines.slice(0, MAX_ENTRIES), '[more left out]'].join('\n');
      return lines.join('\n');
    },
  });
}

/** Links are named and not followed, so that a listing ends and stays inside. */
async function listing(root: string, folder: string, depth: number, lines: string[]): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (lines.length > MAX_ENTRIES) return lines;
    const path = join(folder, entry.name);
    const mark = entry.isDirectory() ? '/' : entry.isSymbolicLink() ? ' (link)' : '';
    lines.push(`${shownPath(root, path)}${mark}`);
    if (entry.isDirectory() && depth > 1) await listing(root, path, depth - 1, lines);
  }
  return lines;
}
