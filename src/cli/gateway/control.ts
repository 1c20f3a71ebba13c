import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import { formatDuration } from '../../lifecycle/duration.ts';
import type { Answer } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { complain, facts, printable } from '../print.ts';
import { reportError } from '../report-error.ts';
import { makeHome, type Settings } from '../settings.ts';
import { GatewayClient } from './client.ts';
import {
  findGateway,
  type GatewayHolder,
  gatewayRunning,
  isGone,
  isSameGateway,
  needGateway,
  signalGateway,
} from './holder.ts';
import { isReady, launchGateway, logPath, poll, READY_MS, untilReady } from './launch.ts';

/** What the commands of `moirai gateway` do to a gateway that runs, or that is to run. */

export async function start(settings: Settings): Promise<Answer | undefined> {
  makeHome(settings.home);
  // What is wrong with the configuration is best told here.
  await readConfig(settings);
  const running = findGateway(settings.home);
  if (running !== null) throw gatewayRunning(settings.home, running);
  return startInBackground(settings);
}

/** Starts the gateway and answers with its address; one that ended before it was ready is reported with its last lines. */
async function startInBackground(settings: Settings): Promise<Answer | undefined> {
  try {
    const { url, pid } = await untilReady(launchGateway(settings), settings);
    const log = logPath(settings.home);
    return { json: { running: true, pid, url, log }, text: facts({ url, pid, log }) };
  } catch (thrown) {
    if (!hasCode(thrown, 'gateway_not_started')) throw thrown;
    const { lines = [], exitCode = 1 } = thrown.details as { lines?: readonly string[]; exitCode?: number };
    if (!settings.json) for (const line of lines) complain(`| ${printable(line)}\n`);
    reportError(thrown, settings.json);
    process.exitCode = exitCode;
    return undefined;
  }
}

export async function stop(settings: Settings, { now = false }: { now?: boolean }): Promise<Answer> {
  const holder = needGateway(settings.home);
  await stopGateway(holder, settings, { signal: 'SIGTERM', now });
  const { pid } = holder;
  return { json: { running: false, pid }, text: `Stopped the gateway, process ${pid}.` };
}

export async function restart(settings: Settings, { now = false }: { now?: boolean }): Promise<Answer | undefined> {
  makeHome(settings.home);
  await readConfig(settings);
  const holder = findGateway(settings.home);
  if (holder !== null) await stopGateway(holder, settings, { signal: 'SIGUSR1', now });
  if (holder === null || holder.startedBy === 'person') return startInBackground(settings);
  const { url, pid } = await untilBack(settings, holder);
  return {
    json: { running: true, pid, url, previous_pid: holder.pid },
    text: facts({ url, pid, before: holder.pid }),
  };
}

/** Waits for the gateway that takes the place of one which left to be started again. */
async function untilBack(settings: Settings, { startedBy }: GatewayHolder): Promise<GatewayHolder> {
  const back = await poll(READY_MS, async () => {
    const holder = findGateway(settings.home);
    return holder !== null && (await isReady(holder, settings)) ? holder : null;
  });
  if (back !== null) return back;
  const where = startedBy === 'start' ? `see ${logPath(settings.home)}` : 'look at its supervisor';
  throw new MoiraiError('gateway_not_started', `the gateway stopped and did not come back in time; ${where}`);
}

export async function drain(settings: Settings): Promise<Answer> {
  const client = await GatewayClient.to(needGateway(settings.home), settings);
  const json = await client.control('drain');
  const turns = printable(json.checks.turns?.detail ?? json.state);
  return { json, text: `The gateway takes no new messages: ${turns}.` };
}

export async function undrain(settings: Settings): Promise<Answer> {
  const client = await GatewayClient.to(needGateway(settings.home), settings);
  return { json: await client.control('undrain'), text: 'The gateway takes messages again.' };
}

const LOOK_MS = 50;
const PROGRESS_MS = 3000;
const INSIST_MS = 500;
/** What closing takes, beyond the turns. */
const GRACE_MS = 10_000;
const EXIT_MS = 3000;

interface Stopping {
  readonly signal: 'SIGTERM' | 'SIGUSR1';
  /** Do not let turns finish. */
  readonly now: boolean;
}

/** Tells a gateway to stop and waits until its home is free, or another gateway's. Throws `gateway_not_stopped`. */
export async function stopGateway(holder: GatewayHolder, settings: Settings, stopping: Stopping): Promise<void> {
  signalGateway(holder, stopping.signal);
  const began = performance.now();
  const patience = holder.drainTimeoutMs + GRACE_MS;
  let insisted = 0;
  let told = 0;
  for (;;) {
    if (!isSameGateway(holder, findGateway(settings.home))) return untilGone(holder);
    const waited = performance.now() - began;
    if (waited > patience) {
      const message = `process ${holder.pid} still runs after ${formatDuration(Math.round(waited))}`;
      throw new MoiraiError('gateway_not_stopped', message);
    }
    // More than once: one that comes while the stop is only beginning is taken for the same.
    if (stopping.now && waited - insisted > INSIST_MS) {
      insisted = waited;
      signalGateway(holder, 'SIGTERM');
    }
    if (!settings.json && waited - told > PROGRESS_MS) {
      told = waited;
      complain(`stopping: ${await turnsOf(holder, settings)}; ${formatDuration(Math.round(patience - waited))} left\n`);
    }
    await sleep(LOOK_MS);
  }
}

/** The home is free a moment before the process has ended; a process that hangs is not waited for. */
async function untilGone(holder: GatewayHolder): Promise<void> {
  await poll(EXIT_MS, async () => isGone(holder) || null);
}

async function turnsOf(holder: GatewayHolder, settings: Settings): Promise<string> {
  try {
    const { checks } = await (await GatewayClient.to(holder, settings)).readiness();
    return `turns ${checks.turns?.detail ?? 'unknown'}`;
  } catch {
    return 'closing'; // Its door is shut already, which says as much.
  }
}
