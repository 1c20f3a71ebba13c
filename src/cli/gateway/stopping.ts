import { setTimeout as sleep } from 'node:timers/promises';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { formatDuration } from '../../lifecycle/duration.ts';
import { complain } from '../print.ts';
import type { Settings } from '../settings.ts';
import { GatewayClient } from './client.ts';
import { findGateway, type GatewayHolder, isGone, isSameGateway, signalGateway } from './holder.ts';

const LOOK_MS = 50;
const PROGRESS_MS = 3000;
const INSIST_MS = 500;
/** What closing takes, beyond the turns. */
const GRACE_MS = 10_000;
const EXIT_MS = 3000;

export interface Stopping {
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

/** The home is free before the process has quite ended: moments, unless something keeps it that nobody needs. */
async function untilGone(holder: GatewayHolder): Promise<void> {
  for (const deadline = performance.now() + EXIT_MS; !isGone(holder) && performance.now() < deadline; ) {
    await sleep(LOOK_MS);
  }
}

async function turnsOf(holder: GatewayHolder, settings: Settings): Promise<string> {
  try {
    const { checks } = await (await GatewayClient.to(holder, settings)).readiness();
    return `turns ${checks.turns?.detail ?? 'unknown'}`;
  } catch {
    return 'closing'; // Its door is shut already, which says as much.
  }
}
