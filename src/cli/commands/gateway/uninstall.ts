import { rmSync } from 'node:fs';
import type { Command } from 'commander';
import { isInstalled, serviceName, supervisorOf } from '../../gateway/service.ts';
import { printable, printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';

interface UninstallOptions {
  readonly print?: boolean;
  readonly name: string;
}

export function define(command: Command): void {
  command
    .description('Removes the service that `install` wrote. What is kept in the home stays.')
    .option('--print', 'show what would be removed and remove nothing')
    .option('--name <name>', 'the name of the service', 'moirai')
    .action((options: UninstallOptions) => uninstall(settingsOf(command), options));
}

async function uninstall(settings: Settings, options: UninstallOptions): Promise<void> {
  const name = serviceName(options.name);
  const supervisor = supervisorOf(process.platform);
  const path = supervisor.path(name);
  const installed = isInstalled(path);
  const next = installed ? supervisor.afterUninstall(name) : [];
  const removed = installed && options.print !== true;
  if (removed) for (const file of [path, ...supervisor.links(name)]) rmSync(file, { force: true });
  if (settings.json) return printJson({ path, installed, removed, next });
  if (!installed) return printLine(`There is no service at ${printable(path)}.`);
  if (!removed) return printLine(`${printable(path)} would be removed.`);
  await printLine(`Removed ${printable(path)}. If it runs:\n`);
  for (const line of next) await printLine(`    ${line}`);
}
