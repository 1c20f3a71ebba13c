import type { BenchEngine, Filled } from './engines.ts';
import { messageRate } from './load.ts';
import type { Report } from './report.ts';

const CLIENTS = 16;

/** Medians over the rounds, per second. */
export interface MessageCost {
  readonly sessions: number;
  readonly raw: number;
  readonly one: number;
  readonly many: number;
  readonly p50: number;
  readonly p99: number;
}

/**
 * What a message costs at each size of the store, beside bare transactions of the same engine. All sizes take turns
 * in every round, so that a slow minute of the machine slows all of them.
 */
export async function measureMessages(
  engine: BenchEngine,
  stores: ReadonlyMap<number, Filled>,
  rounds: number,
  ms: number,
  report: Report,
): Promise<MessageCost[]> {
  const raw: number[] = [];
  const seen = new Map([...stores.keys()].map((size) => [size, { one: [], many: [], p50: [], p99: [] } as Samples]));
  for (const [size, { store }] of stores) {
    report.progress(`${engine.name}: warming up ${size} sessions`);
    await messageRate(store, CLIENTS, size, ms);
  }
  for (let round = 1; round <= rounds; round++) {
    report.progress(`${engine.name}: messages, round ${round} of ${rounds}`);
    raw.push((await engine.raw(ms)).perSecond);
    for (const [size, { store }] of stores) {
      const one = await messageRate(store, 1, size, ms);
      const many = await messageRate(store, CLIENTS, size, ms);
      const samples = seen.get(size);
      samples?.one.push(one.perSecond);
      samples?.p50.push(one.p50);
      samples?.p99.push(one.p99);
      samples?.many.push(many.perSecond);
    }
  }
  return [...seen].map(([sessions, { one, many, p50, p99 }]) => {
    return { sessions, raw: median(raw), one: median(one), many: median(many), p50: median(p50), p99: median(p99) };
  });
}

interface Samples {
  readonly one: number[];
  readonly many: number[];
  readonly p50: number[];
  readonly p99: number[];
}

function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
