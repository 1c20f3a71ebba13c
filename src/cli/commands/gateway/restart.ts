import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import { readConfig } from '../../configuration.ts';
import { findGateway, type GatewayHolder } from '../../gateway/holder.ts';
import { isReady, logPath, READY_MS } from '../../gateway/launch.ts';
import { stopGateway } from '../../gateway/stopping.ts';
import { facts, print, printJson } from '../../print.ts';
import { makeHome, type Settings, settingsOf } from '../../settings.ts';
import { startInBackground } from './start.ts';

const LOOK_MS = 50;

export function define(command: Command): void {
  command
    .description('Stops the gateway as `stop` does and starts it again. Sessions go on where they were.')
    .option('--now', 'interrupt running turns at once; they go on after the start')
    .addHelpText('after', HELP)
    .action((options: { now?: boolean }) => restart(settingsOf(command), options.now === true));
}

const HELP = `
A gateway under a supervisor is started again by that one, and a gateway from a terminal in the background. Where none
runs, one is started. A configuration that is wrong is told, and the gateway left as it is.`;

async function restart(settings: Settings, now: boolean): Promise<void> {
  makeHome(settings.home);
  await readConfig(settings);
  const holder = findGateway(settings.home);
  if (holder !== null) await stopGateway(holder, settings, { signal: 'SIGUSR1', now });
  if (holder === null || holder.startedBy === 'person') return startInBackground(settings);
  const { url, pid } = await untilBack(settings, holder);
  if (settings.json) return printJson({ running: true, pid, url, previous_pid: holder.pid });
  return print(facts({ url, pid, before: holder.pid }));
}

/** Waits for the gateway that takes the place of one which left to be started again. */
async function untilBack(settings: Settings, { startedBy }: GatewayHolder): Promise<GatewayHolder> {
  for (const deadline = performance.now() + READY_MS; performance.now() < deadline; await sleep(LOOK_MS)) {
    const holder = findGateway(settings.home);
    if (holder !== null && (await isReady(holder, settings))) return holder;
  }
  const where = startedBy === 'start' ? `see ${logPath(settings.home)}` : 'look at its supervisor';
  throw new MoiraiError('gateway_not_started', `the gateway stopped and did not come back in time; ${where}`);
}
