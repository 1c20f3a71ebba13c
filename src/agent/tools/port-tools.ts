import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Message } from '../../store/transactions/messages.ts';
import type { SchedulePort, ToolPorts } from './ports.ts';
import { type AgentTool, type Asker, bounded, defineTool } from './tool.ts';
import { existingPath, type WorkspaceOf } from './workspace.ts';

/** The tools that ask the rest of the gateway: those whose port is there. */
export function portTools(ports: ToolPorts, workspaceOf: WorkspaceOf): AgentTool[] {
  const { searchSessions, remember, sendMessage, sendFile, delegate, schedule } = ports;
  return [
    ...(searchSessions ? [searchSessionsTool(searchSessions)] : []),
    ...(remember ? [rememberTool(remember)] : []),
    ...(sendMessage ? [sendMessageTool(sendMessage)] : []),
    ...(sendFile ? [sendFileTool(sendFile, workspaceOf)] : []),
    ...(delegate ? [delegateTool(delegate)] : []),
    ...(schedule ? [scheduleTool(schedule)] : []),
  ];
}

const FOUND = 20;
const EXCERPT = 500;

function searchSessionsTool(search: NonNullable<ToolPorts['searchSessions']>): AgentTool {
  return defineTool({
    name: 'search_sessions',
    description: 'Searches what was said in past conversations with this person.',
    schema: z.object({ text: z.string().min(1).describe('Words that must all occur in a message') }),
    parallelSafe: true,
    async run({ text }, asker) {
      const found = await search(text, asker, FOUND);
      return found.length === 0 ? 'Nothing was found.' : bounded(found.map(lineOf).join('\n'));
    },
  });
}

function lineOf({ sessionId, role, text, at }: Message): string {
  const excerpt = text.length > EXCERPT ? `${text.slice(0, EXCERPT)}...` : text;
  return `[${new Date(at).toISOString()}, session ${sessionId}] ${role}: ${excerpt}`;
}

function rememberTool(remember: NonNullable<ToolPorts['remember']>): AgentTool {
  return defineTool({
    name: 'remember',
    description: 'Remembers a fact about the person or their work beyond this conversation.',
    schema: z.object({
      fact: z.string().min(1).max(4_000).describe('One fact, in words that make sense by themselves'),
    }),
    async run({ fact }, asker) {
      await remember(fact, asker);
      return 'Remembered.';
    },
  });
}

const NOBODY_ELSE: ReadonlySet<string> = new Set(['origin', 'local']);

const TARGETS =
  '`origin`, `home`, a place such as telegram:42, or the name of one; FORUM:new=TITLE;tags=A,B opens a post in a forum';

function sendMessageTool(send: NonNullable<ToolPorts['sendMessage']>): AgentTool {
  return defineTool({
    name: 'send_message',
    description: 'Sends a message to another conversation. Not needed to answer here: your reply is sent by itself.',
    schema: z.object({
      target: z.string().min(1).describe(TARGETS),
      text: z.string().min(1).max(20_000),
    }),
    // The people in that conversation did not ask for it.
    dangerous: ({ target, text }) =>
      NOBODY_ELSE.has(target.trim()) ? null : `send to ${target}: ${text.slice(0, 200)}`,
    run: ({ target, text }, asker) => send(target, text, asker),
  });
}

function sendFileTool(send: NonNullable<ToolPorts['sendFile']>, workspaceOf: WorkspaceOf): AgentTool {
  return defineTool({
    name: 'send_file',
    description: 'Sends a file of the workspace to this conversation, or to another one: a picture is shown as one.',
    schema: z.object({
      path: z.string().min(1).describe('Path in the workspace'),
      text: z.string().max(2_000).optional().describe('Words that go with it'),
      target: z.string().min(1).optional().describe(`This conversation unless given; else ${TARGETS}`),
    }),
    dangerous: ({ path, target = 'origin' }) =>
      NOBODY_ELSE.has(target.trim()) ? null : `send the file ${path} to ${target}`,
    async run({ path, text = '', target = 'origin' }, asker) {
      const real = await existingPath(await workspaceOf(asker), path);
      return send(target, { path: real, text }, asker);
    },
  });
}

function delegateTool(delegate: NonNullable<ToolPorts['delegate']>): AgentTool {
  return defineTool({
    name: 'delegate',
    description: 'Has a task done in a session of its own and returns the answer.',
    schema: z.object({
      task: z
        .string()
        .min(1)
        .max(20_000)
        .describe('Everything needed to do it: nothing of this conversation is seen there'),
    }),
    parallelSafe: true,
    run: async ({ task }, { signal, ...asker }) => bounded(await delegate(task, asker, signal)),
  });
}

/** Flat, since model servers refuse alternatives at the top of a tool's arguments. */
const scheduleSchema = z.object({
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

function scheduleTool(port: SchedulePort): AgentTool {
  return defineTool({
    name: 'schedule',
    description:
      'Has something done later, or again and again, in a session of its own whose answer is sent to this conversation; lists and removes what is scheduled here.',
    schema: scheduleSchema,
    run: (args, { signal: _, ...asker }) => act(port, args, asker),
  });
}

async function act(port: SchedulePort, args: z.output<typeof scheduleSchema>, asker: Asker): Promise<string> {
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
