import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { configPaths } from '../../config/config-paths.ts';
import { problemsOf } from '../../config/problem.ts';
import { hasCode } from '../../errors/moirai-error.ts';
import { configuredPlatforms, type IdlePlatform } from '../../platforms/registry.ts';
import { hidePassword, showSettings } from '../../settings/show-settings.ts';
import { type Answer, answer } from '../command.ts';
import { configNotes } from '../config-notes.ts';
import { assertMemory, readConfig } from '../configuration.ts';
import { idlePlatforms } from '../platforms/unmakeable.ts';
import { facts, printable } from '../print.ts';
import { reportError } from '../report-error.ts';
import type { Settings } from '../settings.ts';

export function define(group: Command): void {
  group
    .command('check')
    .summary('try it without starting')
    .description('Tries the configuration without starting anything, and says what is in force or all that is wrong.')
    .addHelpText('after', '\nThe command exits with 78 when something is wrong.')
    .action(answer(check));
  group
    .command('show')
    .summary('all that is in force')
    .description('Shows the whole configuration as it is in force, defaults included and every secret as ***.')
    .action(answer(show));
  group
    .command('path')
    .summary('where it is read from')
    .description('Prints where the configuration is read from, whether or not the file exists.')
    .addHelpText('after', '\nExample:\n  $EDITOR "$(moirai config path)"')
    .action(answer(path));
}

async function check(settings: Settings): Promise<Answer> {
  const paths = configPaths(settings.home);
  try {
    const config = await readConfig(settings);
    await assertMemory(config);
    const idle = await idlePlatforms(config);
    const notes = await configNotes(config);
    return {
      json: {
        ok: true,
        ...paths,
        problems: [],
        notes,
        ...(idle.length === 0 ? {} : { not_served: idle.map(({ name }) => name) }),
      },
      text: `${facts(summaryOf(config, idle))}${notes.map((note) => `${note}\n`).join('')}The configuration is valid.`,
    };
  } catch (thrown) {
    if (!settings.json || !hasCode(thrown, 'config_invalid')) throw thrown;
    process.exitCode = reportError(thrown, true);
    return { json: { ok: false, ...paths, problems: problemsOf(thrown) }, text: '' };
  }
}

function summaryOf(config: Config, idle: readonly IdlePlatform[]): Record<string, string> {
  const files = configPaths(config.home);
  const { gateway, store, model, memory } = config;
  const address = model.baseUrl === null ? null : hidePassword(model.baseUrl);
  // Those that will be on: enabled, and with all the tokens they need.
  const off = new Set(idle.map(({ name }) => name));
  const platforms = configuredPlatforms(config).flatMap(({ name }) => (off.has(name) ? [] : name));
  if (config.platforms.web.enabled) platforms.push('web');
  return {
    'config.yaml': placeOf(files.config),
    '.env': placeOf(files.env),
    gateway: `${gateway.host}, port ${gateway.port}, ${gateway.apiKey === null && gateway.keys.length === 0 ? 'without a key' : 'with a key'}`,
    store: hidePassword(store.url),
    model: [model.provider, model.name, address].filter((part) => part !== null).join(', '),
    memory: memory.provider,
    platforms: platforms.join(', ') || 'none',
    ...Object.fromEntries(idle.map(({ name, why }) => [name, why])),
  };
}

function placeOf(file: string): string {
  return existsSync(file) ? file : `${file} (none)`;
}

async function show(settings: Settings): Promise<Answer> {
  const { configSettings } = await import('../../config/settings.ts');
  const { stringify } = await import('yaml');
  const json = showSettings(configSettings, await readConfig(settings));
  return { json, text: stringify(json).trimEnd().split('\n').map(printable).join('\n') };
}

async function path({ home }: Settings): Promise<Answer> {
  const { config, env } = configPaths(home);
  return {
    json: { home, config, config_exists: existsSync(config), env, env_exists: existsSync(env) },
    text: printable(config),
  };
}
