import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from '../src/store/port.ts';
import { giver, message, rateOf } from './load.ts';

export interface ExpiryCost {
  readonly seconds: number;
  /** Of the main thread's event loop, milliseconds. */
  readonly lagP99: number;
  /** Messages that others got through meanwhile, and how long one took. */
  readonly others: number;
  readonly othersP99: number;
}

/** As the engine's watcher does. */
const BATCH = 100;
const OTHERS_PAUSE_MS = 20;

/** Ends sessions that all expired in the same instant, batch by batch, while somebody else keeps writing. */
export async function measureExpiry(store: Store, sessions: number): Promise<ExpiryCost> {
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
  let ended = 0;
  for (let more = true; more; ) {
    const batch = await store.write('expire', { giver: giver(), limit: BATCH, trigger: 'watcher' });
    ended += batch.ended.length;
    more = batch.more;
  }
  const elapsed = performance.now() - began;
  lag.disable();
  sweeping = false;
  await writing;
  if (ended !== sessions) throw new Error(`${ended} of ${sessions} sessions ended`);
  const { p99 } = rateOf(latencies, elapsed);
  return { seconds: elapsed / 1000, lagP99: lag.percentile(99) / 1e6, others: latencies.length, othersP99: p99 };
}
