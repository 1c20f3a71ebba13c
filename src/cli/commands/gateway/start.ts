import type { Command } from 'commander';
import { hasCode } from '../../../errors/moirai-error.ts';
import { readConfig } from '../../configuration.ts';
import { findGateway, gatewayRunning } from '../../gateway/holder.ts';
import { launchGateway, logPath, READY_MS, untilReady } from '../../gateway/launch.ts';
import { complain, facts, print, printable, printJson } from '../../print.ts';
import { reportError } from '../../report-error.ts';
import { makeHome, type Settings, settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Starts the gateway in the background and waits until it is ready.')
    .addHelpText('after', HELP)
    .action(() => start(settingsOf(command)));
}

const HELP = `
What it says goes to <home>/logs/gateway.log. When it ends before it is ready, the end of that is shown and the command
exits with the same code. It is waited for ${READY_MS / 1000} s.`;

async function start(settings: Settings): Promise<void> {
  makeHome(settings.home);
  // What is wrong with the configuration is best told here.
  await readConfig(settings);
  const running = findGateway(settings.home);
  if (running !== null) throw gatewayRunning(settings.home, running);
  await startInBackground(settings);
}

/** Starts it and says where it is, or what it said last. */
export async function startInBackground(settings: Settings): Promise<void> {
  try {
    const { url, pid } = await untilReady(launchGateway(settings), settings);
    const log = logPath(settings.home);
    if (settings.json) await printJson({ running: true, pid, url, log });
    else await print(facts({ url, pid, log }));
  } catch (thrown) {
    if (!hasCode(thrown, 'gateway_not_started')) throw thrown;
    const { lines = [], exitCode = 1 } = thrown.details as { lines?: readonly string[]; exitCode?: number };
    if (!settings.json) for (const line of lines) complain(`| ${printable(line)}\n`);
    reportError(thrown, settings.json);
    process.exitCode = exitCode;
  }
}
