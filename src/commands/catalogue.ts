import type { SlashCommand } from '../turns/command.ts';
import { APPROVALS_COMMAND } from './approvals-command.ts';
import { type CommandDeps, type CommandSpec, record } from './command.ts';
import { CRON_COMMAND } from './cron-command.ts';
import { INFO_COMMANDS } from './info-commands.ts';
import { MEMORY_COMMAND } from './memory-command.ts';
import { SESSION_COMMANDS } from './session-commands.ts';
import { TURN_COMMANDS } from './turn-commands.ts';

const HELP: CommandSpec = {
  name: 'help',
  summary: 'list every command',
  async run(call, deps) {
    await record(call, deps);
    return [...COMMANDS, ...deps.more()].map(usage).join('\n');
  },
};

/** Every slash command there is, in the order help shows them. */
export const COMMANDS: readonly CommandSpec[] = [
  ...SESSION_COMMANDS,
  ...TURN_COMMANDS,
  APPROVALS_COMMAND,
  MEMORY_COMMAND,
  CRON_COMMAND,
  ...INFO_COMMANDS,
  HELP,
];

/** Those of ours and those of plugins, ready to be used; ours come first where two have a name. */
export function slashCommands(deps: CommandDeps): () => readonly SlashCommand[] {
  const ours = COMMANDS.map((spec): SlashCommand => ({ ...spec, run: (call) => spec.run(call, deps) }));
  return () => [...ours, ...deps.more()];
}

function usage({ name, aliases = [], takes, summary }: CommandSpec): string {
  const names = [name, ...aliases].map((each) => `/${each}`).join(', ');
  return `${names}${takes === undefined ? '' : ` ${takes}`} - ${summary}`;
}
