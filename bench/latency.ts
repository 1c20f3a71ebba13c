import { setTimeout as sleep } from 'node:timers/promises';
import { Dispatcher } from '../src/events/dispatcher.ts';
import { ClaimRegistry } from '../src/queue/claim-registry.ts';
import { processTimers } from '../src/queue/timers.ts';
import type { Store } from '../src/store/port.ts';
import { context, keyOf, message, type Rate, rateOf } from './load.ts';

const SUBSCRIBER = 'bench';
const PAUSE_MS = 10;

/** How long after the commit of a message's end its subscriber has it, message after message with a pause between. */
export async function measureLatency(store: Store, ms: number): Promise<Rate> {
  const latencies: number[] = [];
  const heard = new Map<string, () => void>();
  const dispatcher = new Dispatcher({
    store,
    timers: processTimers,
    random: Math.random,
    commandContext: context,
    claims: new ClaimRegistry(),
    failed: (error) => {
      throw error;
    },
  });
  await dispatcher.subscribe({
    name: SUBSCRIBER,
    events: ['agent:end'],
    handle: (event) => heard.get(event.session_key ?? '')?.(),
  });
  const began = performance.now();
  for (let n = 1; performance.now() - began < ms; n++) {
    const arrived = new Promise<number>((resolve) => heard.set(keyOf(n), () => resolve(performance.now())));
    await message(store, n);
    const committed = performance.now();
    latencies.push(Math.max(0, (await arrived) - committed));
    heard.delete(keyOf(n));
    await sleep(PAUSE_MS);
  }
  await dispatcher.stop();
  await store.write('unsubscribe', { name: SUBSCRIBER });
  return rateOf(latencies, performance.now() - began);
}
