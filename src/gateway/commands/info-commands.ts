import { formatDuration } from '../../lifecycle/duration.ts';
import { setHome } from '../home-channel.ts';
import { type CommandCall, type CommandDesk, record, type SlashCommandSpec } from './command.ts';
import { NOTHING_HERE } from './session-commands.ts';

/** Commands about the gateway and who uses it. */
export const INFO_COMMANDS: readonly SlashCommandSpec[] = [
  {
    name: 'status',
    summary: 'show where this session stands',
    async run(call, desk) {
      await record(call, desk);
      return status(call, desk);
    },
  },
  {
    name: 'usage',
    summary: 'show what this session has used',
    async run(call, desk) {
      await record(call, desk);
      if (call.session === null) return NOTHING_HERE;
      const { messageCount, tokensIn, tokensOut } = call.session;
      const used = `${messageCount} messages, ${tokensIn} tokens read, ${tokensOut} tokens written`;
      if (desk.prices === null) return `${used}.`;
      const cost = (tokensIn * desk.prices.input + tokensOut * desk.prices.output) / 1e6;
      return `${used}, at a cost of ${cost.toFixed(4)}.`;
    },
  },
  {
    name: 'whoami',
    summary: 'show how the gateway knows you',
    async run(call, desk) {
      await record(call, desk);
      return `You are ${call.party.userId ?? 'unnamed'} on ${call.party.platform}.\nConversation: ${call.party.key}`;
    },
  },
  {
    name: 'sethome',
    operator: true,
    summary: 'make this conversation the one that hears what nobody asked for',
    async run(call, desk) {
      await record(call, desk);
      await setHome(desk.engine.store, call.session);
      return 'This is the home channel now: what the gateway has to say by itself comes here.';
    },
  },
  {
    name: 'restart',
    operator: true,
    summary: 'restart the gateway when what runs is done',
    async run(call, desk) {
      await record(call, desk);
      if (desk.restart === null) return 'There is no gateway to restart here.';
      desk.restart();
      return 'Restarting. Nothing is lost; what is not finished goes on afterwards.';
    },
  },
];

async function status(call: CommandCall, desk: CommandDesk): Promise<string> {
  const { session } = call;
  if (session === null) return NOTHING_HERE;
  const run = desk.turns.runOf(session.id);
  const turns = await desk.engine.store.read('openTurns', { sessionId: session.id });
  const waiting = turns.filter(({ state }) => state === 'queued').length;
  const lines = [
    `Session: ${session.id}${session.title === null ? '' : ` (${session.title})`}`,
    `State: ${session.state}`,
    `Model: ${desk.runner.description}`,
    `Messages: ${session.messageCount}, tokens: ${session.tokensIn} in, ${session.tokensOut} out`,
  ];
  if (run !== undefined) lines.push(`Working${run.tool === null ? '' : `: ${run.tool}`}`);
  if (waiting > 0) lines.push(`Waiting: ${waiting}`);
  if (session.expiresAt !== null)
    lines.push(`Ends in ${formatDuration(session.expiresAt - Date.now())} unless you write`);
  return lines.join('\n');
}
