import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { type AgentTool, defineTool } from './tool.ts';
import { writablePath } from './workspace.ts';

const MAX_CHARACTERS = 4 * 1024 * 1024;

const schema = z.object({
  path: z.string().min(1).describe('Path in the workspace; missing folders are made'),
  text: z.string().max(MAX_CHARACTERS).describe('The whole new content'),
});

export function writeFileTool(workspace: string): AgentTool {
  return defineTool({
    name: 'write_file',
    description: 'Writes a text file of the workspace, replacing what was there.',
    schema,
    async run({ path, text }) {
      const real = await writablePath(workspace, path);
      // No link is followed at the last step: between the judgement and the write it may have come to be.
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
      await using file = await open(real, flags, 0o644).catch((error: unknown) => {
        throw new MoiraiError('tool_failed', `${path} cannot be written: ${faultOf(error)}`, { cause: error });
      });
      await file.writeFile(text);
      return `Wrote ${Buffer.byteLength(text)} bytes to ${path}.`;
    },
  });
}

function faultOf(error: unknown): string {
  const { code } = error as { code?: string };
  if (code === 'ELOOP') return 'it is a link';
  if (code === 'EISDIR') return 'it is a folder';
  return code ?? String(error);
}
