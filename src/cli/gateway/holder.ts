import { setTimeout as sleep } from 'node:timers/promises';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { HomeLock } from '../../store/home-lock.ts';

/** Who is the gateway of a home. */
export interface GatewayHolder {
  readonly pid: number;
  readonly version: string;
  readonly startedAt: string;
  /** Null until it listens. */
  readonly url: string | null;
  readonly instance: string | null;
}

const NAME = 'gateway';
const TRIES = 10;
const TRY_MS = 50;

export type GatewayLock = HomeLock<GatewayHolder>;

/** Makes this process the gateway of a home, or says who is. */
export async function becomeGateway(home: string, holder: GatewayHolder): Promise<GatewayLock> {
  for (let tries = TRIES; ; tries--) {
    const lock = HomeLock.take(home, NAME, holder);
    if (lock instanceof HomeLock) return lock;
    // Somebody who only looks holds it for a moment, and leaves no name.
    if (lock.heldBy !== null || tries === 0) throw running(home, lock.heldBy);
    await sleep(TRY_MS);
  }
}

function running(home: string, holder: GatewayHolder | null): MoiraiError {
  const who = holder === null ? 'another process' : `process ${holder.pid}, since ${holder.startedAt}`;
  const where = holder?.url ? ` at ${holder.url}` : '';
  return new MoiraiError('gateway_running', `the gateway of ${home} is running already: ${who}${where}`);
}

/** The gateway of a home; null when none runs. */
export function findGateway(home: string): GatewayHolder | null {
  return HomeLock.holder<GatewayHolder>(home, NAME);
}

export function needGateway(home: string): GatewayHolder {
  const holder = findGateway(home);
  if (holder === null) throw new MoiraiError('gateway_not_running', `no gateway runs in ${home}`);
  return holder;
}
