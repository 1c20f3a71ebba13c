import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../../../config/config.ts';
import { configPaths } from '../../../config/config-paths.ts';
import { type Problem, problemsOf } from '../../../config/problem.ts';
import { showConfig } from '../../../config/show-config.ts';
import { hasCode } from '../../../errors/moirai-error.ts';
import { assertMemory, readConfig } from '../../configuration.ts';
import { facts, print, printJson, printLine } from '../../print.ts';
import { reportError } from '../../report-error.ts';
import { type Settings, settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Tries the configuration without starting anything, and says what is in force or all that is wrong.')
    .addHelpText('after', '\nThe command exits with 78 when something is wrong.')
    .action(() => check(command));
}

async function check(command: Command): Promise<void> {
  const settings = settingsOf(command);
  try {
    const config = await readConfig(settings);
    await assertMemory(config);
    if (settings.json) return await printReport(settings, []);
    await print(facts(summaryOf(config)));
    await printLine('The configuration is valid.');
  } catch (thrown) {
    if (!settings.json || !hasCode(thrown, 'config_invalid')) throw thrown;
    process.exitCode = reportError(thrown, true);
    await printReport(settings, problemsOf(thrown));
  }
}

function printReport({ home }: Settings, problems: readonly Problem[]): Promise<void> {
  const { config, env } = configPaths(home);
  return printJson({ ok: problems.length === 0, config, env, problems });
}

function summaryOf(config: Config): Record<string, string> {
  const files = configPaths(config.home);
  const { gateway, store, model, memory } = showConfig(config);
  return {
    'config.yaml': placeOf(files.config),
    '.env': placeOf(files.env),
    gateway: `${gateway.host}, port ${gateway.port}, ${gateway.api_key === null ? 'without a key' : 'with a key'}`,
    store: store.url,
    model: [model.provider, model.name, model.base_url].filter((part) => part !== null).join(', '),
    memory: memory.provider,
    platforms: platformsOf(config).join(', ') || 'none',
  };
}

function placeOf(file: string): string {
  return existsSync(file) ? file : `${file} (none)`;
}

/** Those that will be on: enabled, and with all the tokens they need. */
function platformsOf({ platforms: { telegram, discord, slack, webhook, web } }: Config): string[] {
  const on = {
    telegram: telegram.enabled && telegram.token !== null,
    discord: discord.enabled && discord.token !== null,
    slack: slack.enabled && slack.token !== null && slack.appToken !== null,
    webhook: webhook.enabled && Object.keys(webhook.routes).length > 0,
    web: web.enabled,
  };
  return Object.entries(on).flatMap(([name, isOn]) => (isOn ? [name] : []));
}
