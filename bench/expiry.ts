import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Engine } from '../src/engine/engine.ts';
import { ExpiryWatcher } from '../src/engine/expiry-watcher.ts';
import { describeThisProcess } from '../src/engine/host.ts';
import { timeSortedIds } from '../src/engine/ids.ts';
import { processTimers } from '../src/queue/timers.ts';
import type { Store } from '../src/store/port.ts';
import { message, rateOf } from './load.ts';

export interface ExpiryCost {
  readonly seconds: number;
  /** Of the main thread's event loop, milliseconds. */
  readonly lagP99: number;
  /** Messages that others got through meanwhile, and how long one took. */
  readonly others: number;
  readonly othersP99: number;
}

const OTHERS_PAUSE_MS = 20;

/** Lets the engine's watcher end sessions that all expired in the same instant, while somebody else keeps writing. */
export async function measureExpiry(store: Store, sessions: number): Promise<ExpiryCost> {
  const engine = await bootEngine(store);
  const watcher = new ExpiryWatcher(engine, processTimers, Date.now, fail);
  const lag = monitorEventLoopDelay({ resolution: 1 });
  const latencies: number[] = [];
  let sweeping = true;
  const others = async (): Promise<void> => {
    for (let n = sessions + 1; sweeping; n++) {
      const sent = performance.now();
      await message(store, n);
      latencies.push(performance.now() - sent);
      await sleep(OTHERS_PAUSE_MS);
    }
  };
  lag.enable();
  const began = performance.now();
  const writing = others();
  await watcher.start();
  const elapsed = performance.now() - began;
  lag.disable();
  sweeping = false;
  await writing;
  const { ended } = await store.read('stats', {});
  await watcher.stop();
  await engine.stop();
  if (ended.idle_expiry !== sessions) throw new Error(`${ended.idle_expiry} of ${sessions} sessions ended`);
  const { p99 } = rateOf(latencies, elapsed);
  return { seconds: elapsed / 1000, lagP99: lag.percentile(99) / 1e6, others: latencies.length, othersP99: p99 };
}

function bootEngine(store: Store): Promise<Engine> {
  const ids = timeSortedIds(Date.now, Math.random);
  const instance = { id: 'ins_expiry', name: null, version: '0', ...describeThisProcess() };
  return Engine.boot({ store, ids, instance, leaseTtlMs: 3_600_000 });
}

function fail(error: Error): never {
  throw error;
}
