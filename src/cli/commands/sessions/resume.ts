import type { Command } from 'commander';
import { continueSession } from '../../continue-session.ts';
import { settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Goes on with a session: starts a new one in its conversation that sees its transcript.')
    .argument('<id>', 'the id, or any beginning of it that is unique')
    .addHelpText('after', HELP)
    .action((id: string) => continueSession(settingsOf(command), id, 'resume', undefined));
}

const HELP = `
An ended session never reopens. The open session of the conversation ends as "switched"; one that is open itself is shown
and stays as it is.`;
