import type { Command } from 'commander';
import { needGateway } from '../../gateway/holder.ts';
import { stopGateway } from '../../gateway/stopping.ts';
import { printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Stops the gateway: running turns may finish within gateway.drain_timeout, the rest goes on later.')
    .option('--now', 'interrupt running turns at once; the next start goes on with them')
    .action((options: { now?: boolean }) => stop(settingsOf(command), options.now === true));
}

async function stop(settings: Settings, now: boolean): Promise<void> {
  const holder = needGateway(settings.home);
  await stopGateway(holder, settings, { signal: 'SIGTERM', now });
  if (settings.json) return printJson({ running: false, pid: holder.pid });
  return printLine(`Stopped the gateway, process ${holder.pid}.`);
}
