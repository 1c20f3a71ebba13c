import { z } from 'zod';
import type { ToolPorts } from './ports.ts';
import { type AgentTool, defineTool } from './tool.ts';

const schema = z.object({
  fact: z.string().min(1).max(4_000).describe('One fact, in words that make sense by themselves'),
});

export function rememberTool(remember: NonNullable<ToolPorts['remember']>): AgentTool {
  return defineTool({
    name: 'remember',
    description: 'Remembers a fact about the person or their work beyond this conversation.',
    schema,
    async run({ fact }, asker) {
      await remember(fact, asker);
      return 'Remembered.';
    },
  });
}
