import { open } from 'node:fs/promises';
import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { type AgentTool, bounded, defineTool } from './tool.ts';
import { existingPath } from './workspace.ts';

const MAX_BYTES = 8 * 1024 * 1024;

const schema = z.object({
  path: z.string().min(1).describe('Path in the workspace'),
  first_line: z.int().min(1).optional().describe('Line to begin with, 1 unless given'),
  lines: z.int().min(1).max(5_000).optional().describe('How many lines, all unless given'),
});

export function readFileTool(workspace: string): AgentTool {
  return defineTool({
    name: 'read_file',
    description: 'Reads a text file of the workspace.',
    schema,
    parallelSafe: true,
    async run({ path, first_line: first = 1, lines }) {
      const text = await readText(await existingPath(workspace, path), path);
      if (first === 1 && lines === undefined) return bounded(text);
      const all = text.split('\n');
      return bounded(all.slice(first - 1, lines === undefined ? undefined : first - 1 + lines).join('\n'));
    },
  });
}

async function readText(real: string, path: string): Promise<string> {
  await using file = await open(real, 'r');
  const stats = await file.stat();
  if (!stats.isFile()) throw new MoiraiError('tool_failed', `${path} is not a file`);
  if (stats.size > MAX_BYTES)
    throw new MoiraiError('tool_failed', `${path} has ${stats.size} bytes, more than ${MAX_BYTES}`);
  const bytes = await file.readFile();
  if (bytes.includes(0)) throw new MoiraiError('tool_failed', `${path} is not a text file`);
  return bytes.toString('utf8');
}
