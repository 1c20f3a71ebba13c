import type { MessageToAppend } from '../store/transactions/messages.ts';
import type { ToolPermission, TurnTask } from './runner.ts';
import type { AgentTool, ToolSet } from './tools/tool.ts';
import { type ToolCall, type ToolOutcome, toolRow } from './transcript.ts';
import { unlessAborted } from './unless-aborted.ts';

type ToolTask = Pick<TurnTask, 'sessionId' | 'turnId' | 'platform' | 'userId' | 'signal' | 'context'>;

/**
 * Runs the calls of one step in their order; neighbours that are safe to run together do. Yields the rows of each group as
 * soon as it is done, so that what is finished can be kept before the next begins. An abort fails no call silently: each
 * still gets its row, which says how far it came.
 */
export async function* runTools(
  calls: readonly ToolCall[],
  tools: ToolSet,
  task: ToolTask,
): AsyncGenerator<MessageToAppend[], void, void> {
  for (const group of groupsOf(calls, tools)) {
    yield await Promise.all(group.map(async (call) => toolRow(task.turnId, call, await runTool(call, tools, task))));
  }
}

function groupsOf(calls: readonly ToolCall[], tools: ToolSet): ToolCall[][] {
  const groups: ToolCall[][] = [];
  const parallelSafe = ({ name }: ToolCall): boolean => tools.get(name)?.parallelSafe ?? false;
  for (const call of calls) {
    const last = groups.at(-1);
    if (last !== undefined && parallelSafe(call) && last.every(parallelSafe)) last.push(call);
    else groups.push([call]);
  }
  return groups;
}

/** Of what a tool has said, so much is shown to people. */
const MOST_SHOWN = 4000;

async function runTool(call: ToolCall, tools: ToolSet, task: ToolTask): Promise<ToolOutcome> {
  const { signal, context } = task;
  if (signal.aborted) return { text: 'This was not run: the turn was stopped before its time came.', ok: false };
  context.channel.publish({ type: 'tool', state: 'start', id: call.id, name: call.name, args: call.args });
  const outcome = await attempt(call, tools, task);
  const output = outcome.text.slice(0, MOST_SHOWN).toWellFormed();
  context.channel.publish({ type: 'tool', state: 'end', id: call.id, name: call.name, ok: outcome.ok, output });
  return outcome;
}

async function attempt(call: ToolCall, tools: ToolSet, task: ToolTask): Promise<ToolOutcome> {
  const tool = tools.get(call.name);
  if (tool === undefined) return { text: `There is no tool named ${call.name}.`, ok: false };
  try {
    const permission = await permissionFor(tool, call, task);
    if (!permission.allowed) return { text: `This was not run: ${permission.reason}`, ok: false };
    return await run(tool, { ...call, args: permission.args }, task);
  } catch (error) {
    return task.signal.aborted ? STOPPED : failed(error);
  }
}

async function run(tool: AgentTool, call: ToolCall, task: ToolTask): Promise<ToolOutcome> {
  const { sessionId, turnId, platform, userId, signal } = task;
  const began = performance.now();
  const running = tool.run(call.args, { sessionId, turnId, platform, userId, signal });
  const outcome = await unlessAborted(running, signal).then(
    (text): ToolOutcome => ({ text: text === '' ? 'Done; there was no output.' : text, ok: true }),
    (error: unknown) => (signal.aborted ? STOPPED : failed(error)),
  );
  const use = { id: call.id, tool: tool.name, args: call.args };
  task.context.ran?.(use, { ok: outcome.ok, text: outcome.text, ms: Math.round(performance.now() - began) });
  return outcome;
}

function failed(error: unknown): ToolOutcome {
  return { text: `It failed: ${error instanceof Error ? error.message : String(error)}`, ok: false };
}

const STOPPED: ToolOutcome = {
  text: 'This was stopped before it was done, together with the turn. It may have taken effect in part; check before you repeat it.',
  ok: false,
  unknown: true,
};

/** Whether the call may run, and with what: first by rule, then by a person where one has to be asked. */
async function permissionFor(tool: AgentTool, call: ToolCall, { context, signal }: ToolTask): Promise<ToolPermission> {
  const use = { id: call.id, tool: tool.name, args: call.args };
  const permission = (await (context.mayRun && unlessAborted(context.mayRun(use), signal))) ?? {
    allowed: true,
    args: call.args,
  };
  if (!permission.allowed) return permission;
  const action = tool.dangerous(permission.args);
  if (action === null) return permission;
  const approval = await unlessAborted(context.approve({ tool: tool.name, action, args: permission.args }), signal);
  return approval.allowed ? permission : approval;
}
