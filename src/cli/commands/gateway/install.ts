import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { readConfig } from '../../configuration.ts';
import { logPath, thisInstallation } from '../../gateway/launch.ts';
import { isInstalled, serviceName, supervisorOf } from '../../gateway/service.ts';
import type { ServiceFacts } from '../../gateway/service-facts.ts';
import { print, printable, printJson, printLine } from '../../print.ts';
import { makeHome, type Settings, settingsOf } from '../../settings.ts';

/** What closing takes, beyond the turns; then the supervisor may kill it. */
const STOP_GRACE_S = 15;

interface InstallOptions {
  readonly print?: boolean;
  readonly name: string;
}

export function define(command: Command): void {
  command
    .description('Writes a service for this home: a systemd user unit, or a launchd agent on macOS.')
    .option('--print', 'show it and write nothing')
    .option('--name <name>', 'the name of the service', 'moirai')
    .addHelpText('after', HELP)
    .action((options: InstallOptions) => install(settingsOf(command), options));
}

const HELP = `
The service starts the gateway at login, and again when it crashed or exits with 75. It does not see the variables of
your shell: keys and tokens belong into <home>/.env.`;

async function install(settings: Settings, options: InstallOptions): Promise<void> {
  const name = serviceName(options.name);
  const supervisor = supervisorOf(process.platform);
  const text = supervisor.text(await factsOf(settings, name));
  const path = supervisor.path(name);
  const next = supervisor.afterInstall(name, path);
  if (options.print) return settings.json ? printJson({ path, text, next }) : print(text);
  isInstalled(path);
  makeHome(settings.home);
  mkdirSync(dirname(logPath(settings.home)), { recursive: true, mode: 0o700 });
  mkdirSync(dirname(path), { recursive: true });
  // For its owner only: a store's URL may be in it, with its password.
  writeFileSync(path, text, { mode: 0o600 });
  if (settings.json) return printJson({ path, next });
  await printLine(`Wrote ${printable(path)}. Now:\n`);
  for (const line of next) await printLine(`    ${line}`);
}

async function factsOf(settings: Settings, name: string): Promise<ServiceFacts> {
  const { home, storeUrl } = settings;
  const { gateway } = await readConfig(settings);
  const store = storeUrl === null ? [] : ['--store', storeUrl];
  return {
    command: [...thisInstallation(), 'gateway', 'run', '--supervised', ...store],
    ...{ home, name },
    log: logPath(home),
    stopSeconds: Math.ceil(gateway.drainTimeoutMs / 1000) + STOP_GRACE_S,
  };
}
