import type { Command } from 'commander';
import { readConfig } from '../../configuration.ts';
import { printable, printJson, printLine } from '../../print.ts';
import { settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Shows the whole configuration as it is in force, defaults included and every secret as ***.')
    .action(() => show(command));
}

async function show(command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { showConfig } = await import('../../../config/show-config.ts');
  const shown = showConfig(await readConfig(settings));
  if (settings.json) return printJson(shown);
  const { stringify } = await import('yaml');
  for (const line of stringify(shown).trimEnd().split('\n')) await printLine(printable(line));
}
