import { z } from 'zod';
import type { Message } from '../../store/transactions/messages.ts';
import type { ToolPorts } from './ports.ts';
import { type AgentTool, bounded, defineTool } from './tool.ts';

const LIMIT = 20;
const EXCERPT = 500;

const schema = z.object({ text: z.string().min(1).describe('Words that must all occur in a message') });

export function searchSessionsTool(search: NonNullable<ToolPorts['searchSessions']>): AgentTool {
  return defineTool({
    name: 'search_sessions',
    description: 'Searches what was said in past conversations with this person.',
    schema,
    parallelSafe: true,
    async run({ text }, asker) {
      const found = await search(text, asker, LIMIT);
      return found.length === 0 ? 'Nothing was found.' : bounded(found.map(lineOf).join('\n'));
    },
  });
}

function lineOf({ sessionId, role, text, at }: Message): string {
  const excerpt = text.length > EXCERPT ? `${text.slice(0, EXCERPT)}...` : text;
  return `[${new Date(at).toISOString()}, session ${sessionId}] ${role}: ${excerpt}`;
}
