import { z } from 'zod';
import type { ToolPorts } from './ports.ts';
import { type AgentTool, defineTool } from './tool.ts';

const schema = z.object({
  target: z.string().min(1).describe('Where to, such as telegram:42'),
  text: z.string().min(1).max(20_000),
});

export function sendMessageTool(send: NonNullable<ToolPorts['sendMessage']>): AgentTool {
  return defineTool({
    name: 'send_message',
    description: 'Sends a message to another conversation. Not needed to answer here: your reply is sent by itself.',
    schema,
    run: ({ target, text }, asker) => send(target, text, asker),
  });
}
