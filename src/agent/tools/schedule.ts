import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { SchedulePort } from './ports.ts';
import { type AgentTool, type Asker, defineTool } from './tool.ts';

/** Flat, since model servers refuse alternatives at the top of a tool's arguments. */
const schema = z.object({
  action: z.enum(['add', 'list', 'remove']),
  schedule: z
    .string()
    .max(200)
    .optional()
    .describe('For add: "0 9 * * 1-5" (minute hour day month weekday), "every 30m", "at 2026-11-20T09:00" or "in 20m"'),
  task: z
    .string()
    .max(20_000)
    .optional()
    .describe('For add: all that is needed to do it, since nothing of this conversation is seen then'),
  name: z.string().max(100).optional().describe('For add: a short name'),
  timezone: z
    .string()
    .max(100)
    .optional()
    .describe('For add: IANA name such as Europe/Rome; else the time zone of the gateway'),
  job: z.string().max(100).optional().describe('For remove: its id or name'),
});

export function scheduleTool(port: SchedulePort): AgentTool {
  return defineTool({
    name: 'schedule',
    description:
      'Has something done later, or again and again, in a session of its own whose answer is sent to this conversation; lists and removes what is scheduled here.',
    schema,
    run: (args, { signal: _, ...asker }) => act(port, args, asker),
  });
}

async function act(port: SchedulePort, args: z.output<typeof schema>, asker: Asker): Promise<string> {
  const { action, name, timezone } = args;
  if (action === 'list') return port.list(asker);
  if (action === 'remove') return port.remove(needed('job', args.job), asker);
  return port.add(
    { schedule: needed('schedule', args.schedule), task: needed('task', args.task), name, timezone },
    asker,
  );
}

function needed(what: string, given: string | undefined): string {
  if (given?.trim()) return given;
  throw new MoiraiError('tool_failed', `the arguments are not right (${what}: is missing)`);
}
