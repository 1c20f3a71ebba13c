import { z } from 'zod';
import type { ToolPorts } from './ports.ts';
import { type AgentTool, bounded, defineTool } from './tool.ts';

const schema = z.object({
  task: z
    .string()
    .min(1)
    .max(20_000)
    .describe('Everything needed to do it: nothing of this conversation is seen there'),
});

export function delegateTool(delegate: NonNullable<ToolPorts['delegate']>): AgentTool {
  return defineTool({
    name: 'delegate',
    description: 'Has a task done in a session of its own and returns the answer.',
    schema,
    parallelSafe: true,
    run: async ({ task }, { signal, ...asker }) => bounded(await delegate(task, asker, signal)),
  });
}
