import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../../../config/config.ts';
import { configPaths } from '../../../config/config-paths.ts';
import { type Problem, problemsOf } from '../../../config/problem.ts';
import { hasCode } from '../../../errors/moirai-error.ts';
import { configuredPlatforms, NOT_SERVED_TEXT, notServed } from '../../../platforms/registry.ts';
import { hidePassword } from '../../../settings/show-settings.ts';
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
    if (settings.json) return await printReport(settings, [], notServed(config));
    await print(facts(summaryOf(config)));
    await printLine('The configuration is valid.');
  } catch (thrown) {
    if (!settings.json || !hasCode(thrown, 'config_invalid')) throw thrown;
    process.exitCode = reportError(thrown, true);
    await printReport(settings, problemsOf(thrown));
  }
}

function printReport({ home }: Settings, problems: readonly Problem[], idle: readonly string[] = []): Promise<void> {
  const { config, env } = configPaths(home);
  const not_served = idle.length === 0 ? {} : { not_served: idle };
  return printJson({ ok: problems.length === 0, config, env, problems, ...not_served });
}

function summaryOf(config: Config): Record<string, string> {
  const files = configPaths(config.home);
  const { gateway, store, model, memory } = config;
  const address = model.baseUrl === null ? null : hidePassword(model.baseUrl);
  return {
    'config.yaml': placeOf(files.config),
    '.env': placeOf(files.env),
    gateway: `${gateway.host}, port ${gateway.port}, ${gateway.apiKey === null ? 'without a key' : 'with a key'}`,
    store: hidePassword(store.url),
    model: [model.provider, model.name, address].filter((part) => part !== null).join(', '),
    memory: memory.provider,
    platforms: servedPlatforms(config).join(', ') || 'none',
    ...Object.fromEntries(notServed(config).map((name) => [name, NOT_SERVED_TEXT])),
  };
}

function placeOf(file: string): string {
  return existsSync(file) ? file : `${file} (none)`;
}

/** Those that will be on: enabled, and with all the tokens they need. */
function servedPlatforms(config: Config): string[] {
  return [...configuredPlatforms(config).map(({ name }) => name), ...(config.platforms.web.enabled ? ['web'] : [])];
}
