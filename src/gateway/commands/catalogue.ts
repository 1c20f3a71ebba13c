import { MoiraiError } from '../../errors/moirai-error.ts';
import { BACKGROUND_COMMAND } from './background-command.ts';
import { record, type SlashCommandSpec } from './command.ts';
import { CRON_COMMAND } from './cron-command.ts';
import { INFO_COMMANDS } from './info-commands.ts';
import { MEMORY_COMMAND } from './memory-command.ts';
import { SESSION_COMMANDS } from './session-commands.ts';
import { TURN_COMMANDS } from './turn-commands.ts';

const HELP: SlashCommandSpec = {
  name: 'help',
  summary: 'list every command',
  async run(call, deps) {
    await record(call, deps);
    return [...COMMANDS, ...deps.more()].map(usage).join('\n');
  },
};

/** Every slash command there is, in the order help shows them. */
export const COMMANDS: readonly SlashCommandSpec[] = [
  ...SESSION_COMMANDS,
  ...TURN_COMMANDS,
  BACKGROUND_COMMAND,
  MEMORY_COMMAND,
  CRON_COMMAND,
  ...INFO_COMMANDS,
  HELP,
];

const byName = new Map(COMMANDS.flatMap((spec) => [spec.name, ...(spec.aliases ?? [])].map((name) => [name, spec])));

/** One of ours, or one of these. */
export function findCommand(name: string, more: readonly SlashCommandSpec[]): SlashCommandSpec {
  const found = byName.get(name) ?? more.find((spec) => spec.name === name);
  if (found !== undefined) return found;
  throw new MoiraiError('unknown_command', `there is no command /${name}`);
}

/** Whether a command changes what later messages find; one that does not exist changes nothing. */
export function isOrdered(name: string, more: readonly SlashCommandSpec[]): boolean {
  return (byName.get(name) ?? more.find((spec) => spec.name === name))?.ordered ?? false;
}

function usage({ name, aliases = [], takes, summary }: SlashCommandSpec): string {
  const names = [name, ...aliases].map((each) => `/${each}`).join(', ');
  return `${names}${takes === undefined ? '' : ` ${takes}`} - ${summary}`;
}
