import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fchmodSync, fstatSync, mkdirSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import type { Settings } from '../settings.ts';
import { GatewayClient } from './client.ts';
import { findGateway, type GatewayHolder } from './holder.ts';

export const READY_MS = 15_000;
const LOOK_MS = 50;
const LINES_SHOWN = 20;

/** A gateway that was started in the background, and where its log began. */
export interface Launched {
  readonly process: ChildProcess;
  readonly log: string;
  readonly logStart: number;
}

export function logPath(home: string): string {
  return join(home, 'logs', 'gateway.log');
}

/** The Node that runs this, and the program as it was called: through the launcher, or from source. */
export function thisInstallation(): readonly [node: string, program: string] {
  // Not the link that npm makes for it: that may go while the program stays.
  return [process.execPath, realpathSync(process.argv[1] ?? '')];
}

/**
 * How Node runs a gateway, here and in `npm start`: turns leave a lot behind that is dead at once, and a smaller nursery
 * hands it back earlier. A quarter of the default costs nothing that can be measured, and saves 8 MB from the start.
 */
export const NODE_FLAGS = ['--max-semi-space-size=4'] as const;

/** Starts `gateway run` in a session of its own: it outlives this process and its terminal. */
export function launchGateway({ home, storeUrl }: Settings): Launched {
  const log = logPath(home);
  mkdirSync(dirname(log), { recursive: true, mode: 0o700 });
  const descriptor = openSync(log, 'a', 0o600);
  try {
    // The file may have been there before, with other rights.
    fchmodSync(descriptor, 0o600);
    const store = storeUrl === null ? [] : ['--store', storeUrl];
    const [node, program] = thisInstallation();
    const child = spawn(node, [...NODE_FLAGS, program, 'gateway', 'run', '--detached', '--home', home, ...store], {
      cwd: home,
      detached: true,
      stdio: ['ignore', descriptor, descriptor],
      env: { ...process.env, MOIRAI_HOME: home },
    });
    child.unref();
    return { process: child, log, logStart: fstatSync(descriptor).size };
  } finally {
    closeSync(descriptor);
  }
}

/** Waits until a launched gateway takes messages. Throws `gateway_not_started` with its last lines. */
export async function untilReady(launched: Launched, settings: Settings): Promise<GatewayHolder> {
  const { process: child, log } = launched;
  let failure: Error | null = null;
  child.once('error', (error) => {
    failure = error;
  });
  const holder = await poll(READY_MS, async () => {
    const found = findGateway(settings.home);
    if (found !== null && found.pid === child.pid && (await isReady(found, settings))) return found;
    if (failure !== null || child.exitCode !== null || child.signalCode !== null) throw ended(launched, failure);
    return null;
  });
  if (holder !== null) return holder;
  throw new MoiraiError('gateway_not_started', `the gateway was not ready after ${READY_MS / 1000} s; see ${log}`);
}

/** Looks again and again until something is found; null when nothing was in time. */
export async function poll<T>(patienceMs: number, look: () => Promise<T | null>): Promise<T | null> {
  for (const deadline = performance.now() + patienceMs; performance.now() < deadline; await sleep(LOOK_MS)) {
    const found = await look();
    if (found !== null) return found;
  }
  return null;
}

export async function isReady(holder: GatewayHolder, settings: Settings): Promise<boolean> {
  if (holder.url === null) return false;
  try {
    return (await (await GatewayClient.to(holder, settings)).readiness()).state === 'ready';
  } catch (thrown) {
    // It listens, and will not tell us more: the key is another one than it was given.
    if (hasCode(thrown, 'unauthorized')) return true;
    if (hasCode(thrown, 'gateway_unreachable')) return false;
    throw thrown;
  }
}

function ended({ process: child, log, logStart }: Launched, failure: Error | null): MoiraiError {
  const how = failure?.message ?? (child.signalCode === null ? `exit code ${child.exitCode}` : child.signalCode);
  const lines = lastLines(log, logStart);
  const details = { exitCode: child.exitCode ?? 1, lines };
  const message = `the gateway ended before it was ready (${how}); its log is ${log}`;
  return new MoiraiError('gateway_not_started', message, { details });
}

/** What was written to a log since it had a size. */
function lastLines(log: string, since: number): string[] {
  const text = readFileSync(log).subarray(since).toString('utf8').trimEnd();
  return text === '' ? [] : text.split('\n').slice(-LINES_SHOWN);
}
