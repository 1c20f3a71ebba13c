import type { Command } from 'commander';
import { continueSession } from '../../continue-session.ts';
import { settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Starts a new session that sees the transcript of another, which stays as it is.')
    .argument('<id>', 'the id, or any beginning of it that is unique')
    .option('--title <title>', 'its title (default: that of the other one)')
    .addHelpText('after', '\nThe open session of the conversation ends as "branched".')
    .action((id: string, { title }: { title?: string }) => continueSession(settingsOf(command), id, 'branch', title));
}
