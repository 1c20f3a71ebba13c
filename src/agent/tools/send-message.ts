import { z } from 'zod';
import type { ToolPorts } from './ports.ts';
import { type AgentTool, defineTool } from './tool.ts';

const schema = z.object({
  target: z.string().min(1).describe('`origin`, `home`, a place such as telegram:42, or the name of one'),
  text: z.string().min(1).max(20_000),
});

const AT_HOME: ReadonlySet<string> = new Set(['origin', 'home', 'local']);

export function sendMessageTool(send: NonNullable<ToolPorts['sendMessage']>): AgentTool {
  return defineTool({
    name: 'send_message',
    description: 'Sends a message to another conversation. Not needed to answer here: your reply is sent by itself.',
    schema,
    // Whoever reads it there did not ask for it.
    dangerous: ({ target, text }) => (AT_HOME.has(target.trim()) ? null : `send to ${target}: ${text.slice(0, 200)}`),
    run: ({ target, text }, asker) => send(target, text, asker),
  });
}
