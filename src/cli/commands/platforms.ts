import type { Command } from 'commander';
import { ADDABLE_PLATFORMS } from '../../platforms/registry.ts';
import { answer } from '../command.ts';
import { addPlatform } from '../platforms/add-platform.ts';
import { listPlatforms } from '../platforms/list-platforms.ts';
import { testPlatforms } from '../platforms/test-platform.ts';

export function define(group: Command): void {
  group
    .command('list')
    .summary('how each platform stands')
    .description('Lists the platforms that are configured and how they stand, and those that can be added.')
    .action(answer(listPlatforms));
  group
    .command('add')
    .summary('connect a platform')
    .description(
      'Says what to click where, asks for what the platform needs, tries it at its server, and writes it down: secrets into .env, the rest into config.yaml.',
    )
    .argument('<name>', ADDABLE_PLATFORMS.map(({ name }) => name).join(', '))
    .option('--account <name>', 'a further account of the platform, under this name')
    .option('--set <key=value>', 'an answer; again for each', collect)
    .option('--force', 'write it although the server does not take it, or does not answer')
    .action(answer(addPlatform));
  group
    .command('test')
    .summary('ask a platform who we are')
    .description(
      'Asks the server of a platform, or of each that is configured, who we are. Nothing is sent or received.',
    )
    .argument('[name]', 'as `moirai platforms list` shows it; with its account, such as telegram@work')
    .action(answer(testPlatforms));
}

function collect(pair: string, before: readonly string[] = []): readonly string[] {
  return [...before, pair];
}
