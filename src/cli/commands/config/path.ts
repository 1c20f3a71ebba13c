import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { configPaths } from '../../../config/config-paths.ts';
import { printable, printJson, printLine } from '../../print.ts';
import { settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Prints where the configuration is read from, whether or not the file exists.')
    .addHelpText('after', '\nExample:\n  $EDITOR "$(moirai config path)"')
    .action(() => path(command));
}

async function path(command: Command): Promise<void> {
  const { home, json } = settingsOf(command);
  const { config, env } = configPaths(home);
  if (!json) return printLine(printable(config));
  return printJson({ home, config, config_exists: existsSync(config), env, env_exists: existsSync(env) });
}
