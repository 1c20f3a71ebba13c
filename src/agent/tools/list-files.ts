import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { type AgentTool, defineTool } from './tool.ts';
import { existingPath, rootOf, shownPath } from './workspace.ts';

const MAX_ENTRIES = 500;

const schema = z.object({
  path: z.string().optional().describe('Folder in the workspace, the workspace itself unless given'),
  depth: z.int().min(1).max(5).optional().describe('How many levels of folders, 1 unless given'),
});

export function listFilesTool(workspace: string): AgentTool {
  return defineTool({
    name: 'list_files',
    description: 'Lists files and folders of the workspace; folders end with a slash.',
    schema,
    parallelSafe: true,
    async run({ path = '.', depth = 1 }) {
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
    lines.push(`${shownPath(root, path)}${markOf(entry)}`);
    if (entry.isDirectory() && depth > 1) await listing(root, path, depth - 1, lines);
  }
  return lines;
}

function markOf(entry: Dirent): string {
  if (entry.isDirectory()) return '/';
  return entry.isSymbolicLink() ? ' (link)' : '';
}
