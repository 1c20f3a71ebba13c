import { formatDuration } from '../lifecycle/duration.ts';
import { setHome } from '../outbound/home-channel.ts';
import type { CommandCall } from '../turns/command.ts';
import { type CommandDeps, type CommandSpec, record } from './command.ts';
import { NOTHING_HERE } from './session-commands.ts';

/** Commands about the gateway and who uses it. */
export const INFO_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'status',
    summary: 'show where this session stands',
    async run(call, deps) {
      await record(call, deps);
      return status(call, deps);
    },
  },
  {
    name: 'usage',
    summary: 'show what this session has used',
    async run(call, deps) {
      await record(call, deps);
      if (call.session === null) return NOTHING_HERE;
      const { messageCount, tokensIn, tokensOut } = call.session;
      const used = `${messageCount} messages, ${tokensIn} tokens read, ${tokensOut} tokens written`;
      if (deps.prices === null) return `${used}.`;
      const cost = (tokensIn * deps.prices.input + tokensOut * deps.prices.output) / 1e6;
      return `${used}, at a cost of ${cost.toFixed(4)}.`;
    },
  },
  {
    name: 'whoami',
    summary: 'show how the gateway knows you',
    async run(call, deps) {
      await record(call, deps);
      const { conversation, by } = call;
      const role = by === null || by.admin ? ', an admin' : '';
      return `You are ${conversation.userId ?? 'unnamed'} on ${conversation.platform}${role}.\nConversation: ${conversation.key}`;
    },
  },
  {
    name: 'sethome',
    operator: true,
    summary: 'make this conversation the one that hears what nobody asked for',
    async run(call, deps) {
      await record(call, deps);
      await setHome(deps.engine.store, call.conversation);
      return 'This is the home channel now: what the gateway has to say by itself comes here.';
    },
  },
  {
    name: 'restart',
    operator: true,
    summary: 'restart the gateway when what runs is done',
    async run(call, deps) {
      await record(call, deps);
      if (deps.restart === null) return 'There is no gateway to restart here.';
      const restarts = await deps.restart();
      return restarts
        ? 'Restarting. Nothing is lost; what is not finished goes on afterwards.'
        : 'Not restarting: the configuration is wrong. The log says where; `moirai config check` too.';
    },
  },
];

async function status(call: CommandCall, deps: CommandDeps): Promise<string> {
  if (call.session === null) return NOTHING_HERE;
  // As it is now: the command itself was activity, and moved its deadline.
  const session = await deps.engine.store.read('findSession', { idOrPrefix: call.session.id });
  const run = deps.turns.runOf(session.id);
  const turns = await deps.engine.store.read('openTurns', { sessionId: session.id, limit: 10_000 });
  const waiting = turns.filter(({ state }) => state === 'queued').length;
  const lines = [
    `Session: ${session.id}${session.title === null ? '' : ` (${session.title})`}`,
    `State: ${session.state}`,
    `Model: ${deps.runner.description}`,
    `Messages: ${session.messageCount}, tokens: ${session.tokensIn} in, ${session.tokensOut} out`,
  ];
  const tool = run?.channel.activity.tool ?? null;
  if (run !== undefined) lines.push(`Working${tool === null ? '' : `: ${tool}`}`);
  if (waiting > 0) lines.push(`Waiting: ${waiting}`);
  if (session.expiresAt !== null)
    lines.push(`Ends in ${formatDuration(session.expiresAt - session.lastActivityAt)} unless you write`);
  return lines.join('\n');
}
