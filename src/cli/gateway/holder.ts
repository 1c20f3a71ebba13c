import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeThisProcess, type HostFacts, processStart } from '../../engine/host.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { HomeLock } from '../../store/home-lock.ts';

/** The process that is the gateway of a home. */
export interface GatewayHolder extends HostFacts {
  readonly version: string;
  readonly startedAt: string;
  /** What starts it again when it exits with 75: itself after `gateway start`, or its supervisor; after a person, nothing. */
  readonly startedBy: 'person' | 'start' | 'supervisor';
  readonly drainTimeoutMs: number;
  /** Null until it listens. */
  readonly url: string | null;
  readonly instance: string | null;
}

const NAME = 'gateway';
const TRIES = 10;
const TRY_MS = 50;

/** Makes this process the gateway of a home, or says who is. */
export async function becomeGateway(home: string, holder: GatewayHolder): Promise<HomeLock<GatewayHolder>> {
  for (let tries = TRIES; ; tries--) {
    const lock = HomeLock.take(home, NAME, holder);
    if (lock instanceof HomeLock) return lock;
    // A process that only looks holds the lock for a moment and writes no name: the name there is may be a dead one's.
    if ((lock.heldBy !== null && !isGone(lock.heldBy)) || tries === 0) throw gatewayRunning(home, lock.heldBy);
    await sleep(TRY_MS);
  }
}

export function gatewayRunning(home: string, holder: GatewayHolder | null): MoiraiError {
  const who = holder === null ? 'another process' : `process ${holder.pid}, since ${holder.startedAt}`;
  const where = holder?.url ? ` at ${holder.url}` : '';
  return new MoiraiError('gateway_running', `the gateway of ${home} is running already: ${who}${where}`);
}

/** The gateway of a home; null when none runs. Makes nothing, not even the home. */
export function findGateway(home: string): GatewayHolder | null {
  if (!existsSync(join(home, `${NAME}.lock`))) return null;
  const holder = HomeLock.holder<GatewayHolder>(home, NAME);
  // Another process only looks, or has just taken the lock and not written its name.
  return holder === null || isGone(holder) ? null : holder;
}

export function needGateway(home: string): GatewayHolder {
  const holder = findGateway(home);
  if (holder === null) throw new MoiraiError('gateway_not_running', `no gateway runs in ${home}`);
  return holder;
}

/** Sends a signal to the very process that the note names, and to no other one that has its number. */
export function signalGateway(holder: GatewayHolder, signal: NodeJS.Signals): void {
  if (!isHere(holder)) {
    throw new MoiraiError('gateway_elsewhere', `the gateway runs as process ${holder.pid} of ${holder.host}`);
  }
  try {
    process.kill(holder.pid, signal);
  } catch (thrown) {
    // It has just ended, which is what most signals are for.
    if ((thrown as NodeJS.ErrnoException).code === 'ESRCH') return;
    const message = `process ${holder.pid} cannot be sent ${signal}: ${(thrown as Error).message}`;
    throw new MoiraiError('gateway_unreachable', message, { cause: thrown });
  }
}

/** Whether process ids mean the same there as here. */
function isHere({ bootId, pidSpace, host }: GatewayHolder): boolean {
  const here = describeThisProcess();
  return bootId === here.bootId && pidSpace === here.pidSpace && (bootId !== null || host === here.host);
}

/** Whether its process is. Proven only: what runs elsewhere is not gone. */
export function isGone(holder: GatewayHolder): boolean {
  return isHere(holder) && holder.pidStarted !== null && processStart(holder.pid) !== holder.pidStarted;
}

export function isSameGateway(one: GatewayHolder, other: GatewayHolder | null): boolean {
  return one.pid === other?.pid && one.startedAt === other.startedAt;
}
