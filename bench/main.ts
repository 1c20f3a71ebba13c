import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { type BenchEngine, type EngineName, type Filled, startEngine } from './engines.ts';
import { measureExpiry } from './expiry.ts';
import { measureLatency } from './latency.ts';
import { type ListenersPlan, measureListeners } from './listeners.ts';
import { COMMITS_PER_MESSAGE } from './load.ts';
import { type MessageCost, measureMessages } from './message-cost.ts';
import { measureOpen } from './open.ts';
import { measureBacklog, measureClaims } from './queue.ts';
import { Report } from './report.ts';

const USAGE = `npm run bench -- [--quick] [--parts store,listeners] [--engines sqlite,postgres]
                 [--sizes 1000,10000,100000,1000000] [--json]`;

/** How much of each thing is done. */
interface Plan {
  readonly sizes: readonly number[];
  readonly rounds: number;
  readonly roundMs: number;
  readonly expiring: number;
  readonly latencyMs: number;
  /** Lanes that wait, and messages that wait in one conversation. */
  readonly lanes: readonly number[];
  readonly backlog: readonly number[];
  readonly listeners: ListenersPlan;
}

const FULL: Plan = {
  sizes: [1000, 10_000, 100_000, 1_000_000],
  rounds: 7,
  roundMs: 1000,
  expiring: 100_000,
  latencyMs: 5000,
  lanes: [0, 1000, 100_000],
  backlog: [0, 500, 2000],
  listeners: { pacedMs: 10_000, burstMs: 5000 },
};
const QUICK: Plan = {
  ...{ sizes: [1000, 20_000], rounds: 3, roundMs: 500, expiring: 5000, latencyMs: 1000 },
  ...{ lanes: [0, 1000, 5000], backlog: [0, 500, 2000] },
  listeners: { pacedMs: 2000, burstMs: 1000 },
};

/** The goals: messages per second as a share of bare transactions, with many clients, and growth over the sizes. */
const GOALS = {
  share: 0.35,
  many: { sqlite: 3000, postgres: 900 },
  claimMs: 2,
  growth: 1.5,
  expirySeconds: 20,
  lagMs: 50,
  openMs: 1000,
  residentMb: 200,
} as const;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      parts: { type: 'string', default: 'store,listeners' },
      engines: { type: 'string', default: 'sqlite,postgres' },
      sizes: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return;
  }
  const base = values.quick ? QUICK : FULL;
  const plan: Plan = { ...base, sizes: values.sizes?.split(',').map(Number) ?? base.sizes };
  const report = new Report();
  report.progress(`${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)} before we begin`);
  const parts = values.parts.split(',');
  if (parts.includes('store')) {
    for (const name of values.engines.split(',') as EngineName[]) await measureEngine(name, plan, report);
  }
  if (parts.includes('listeners')) await measureListeners(plan.listeners, report);
  process.stdout.write(values.json ? `${JSON.stringify(report.figures, null, 2)}\n` : `${report.table()}\n`);
}

async function measureEngine(name: EngineName, plan: Plan, report: Report): Promise<void> {
  report.progress(`${name}: starting`);
  const engine = await startEngine(name);
  try {
    const stores = await fillAll(engine, plan.sizes, report);
    addMessages(name, await measureMessages(engine, stores, plan.rounds, plan.roundMs, report), report);
    await addLatency(name, stores, plan, report);
    await addQueue(name, stores, plan, report);
    await addOpen(name, stores, report);
    await addExpiry(engine, plan, report);
  } finally {
    await engine.close();
  }
}

async function fillAll(engine: BenchEngine, sizes: readonly number[], report: Report): Promise<Map<number, Filled>> {
  const stores = new Map<number, Filled>();
  for (const sessions of sizes) {
    const progress = (done: number): void => report.progress(`${engine.name}: filled ${done} of ${sessions} sessions`);
    stores.set(sessions, await engine.fill({ sessions }, progress));
  }
  return stores;
}

function addMessages(name: EngineName, costs: readonly MessageCost[], report: Report): void {
  const [smallest] = costs;
  if (smallest === undefined) return;
  report.add(name, 'bare transactions, 1 client', `${smallest.raw.toFixed(0)} /s`);
  for (const cost of costs) {
    const at = `at ${count(cost.sessions)} sessions`;
    const share = (cost.one * COMMITS_PER_MESSAGE) / cost.raw;
    const latency = `p50 ${cost.p50.toFixed(2)} ms, p99 ${cost.p99.toFixed(2)} ms`;
    report.add(name, `messages ${at}, 1 client`, `${cost.one.toFixed(0)} /s (${latency})`);
    report.add(
      name,
      '  its transactions as a share of bare ones',
      share.toFixed(2),
      `>= ${GOALS.share}`,
      share >= GOALS.share,
    );
    const goal = GOALS.many[name];
    report.add(name, `messages ${at}, 16 clients`, `${cost.many.toFixed(0)} /s`, `>= ${goal}`, cost.many >= goal);
    if (cost === smallest) continue;
    for (const [clients, growth] of [
      [1, smallest.one / cost.one],
      [16, smallest.many / cost.many],
    ] as const) {
      const what = `  cost against ${count(smallest.sessions)} sessions, ${clients} client${clients > 1 ? 's' : ''}`;
      report.add(name, what, `x ${growth.toFixed(2)}`, `<= ${GOALS.growth}`, growth <= GOALS.growth);
    }
  }
}

async function addLatency(
  name: EngineName,
  stores: ReadonlyMap<number, Filled>,
  plan: Plan,
  report: Report,
): Promise<void> {
  const smallest = stores.values().next().value;
  if (smallest === undefined) return;
  report.progress(`${name}: from commit to subscriber`);
  const { p50, p99 } = await measureLatency(smallest.store, plan.latencyMs);
  report.add(name, 'from commit to subscriber', `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
}

async function addQueue(
  name: EngineName,
  stores: ReadonlyMap<number, Filled>,
  plan: Plan,
  report: Report,
): Promise<void> {
  const smallest = stores.values().next().value;
  if (smallest === undefined) return;
  report.progress(`${name}: claims beside lanes that wait`);
  for (const [lanes, ms] of await measureClaims(smallest.store, plan.lanes)) {
    const what = `a claim beside ${count(lanes)} lanes that wait`;
    report.add(name, what, `${ms.toFixed(2)} ms`, `< ${GOALS.claimMs} ms`, ms < GOALS.claimMs);
  }
  report.progress(`${name}: messages behind others of their conversation`);
  const costs = await measureBacklog(smallest.store, plan.backlog);
  const alone = costs.values().next().value ?? Number.NaN;
  for (const [waiting, ms] of costs) {
    const what = `taking a message behind ${count(waiting)} others`;
    const growth = ms / alone;
    const shown = `${ms.toFixed(2)} ms (x ${growth.toFixed(2)})`;
    report.add(name, what, shown, `<= x ${GOALS.growth}`, growth <= GOALS.growth);
  }
}

async function addOpen(name: EngineName, stores: ReadonlyMap<number, Filled>, report: Report): Promise<void> {
  const [sessions, largest] = [...stores].at(-1) ?? [];
  if (sessions === undefined || largest === undefined) return;
  report.progress(`${name}: opening ${sessions} sessions in a fresh process`);
  const { ms, residentMb } = await measureOpen(largest.url);
  const at = `at ${count(sessions)} sessions`;
  report.add(name, `opening ${at}`, `${ms.toFixed(0)} ms`, `< ${GOALS.openMs} ms`, ms < GOALS.openMs);
  const met = residentMb < GOALS.residentMb;
  report.add(name, `resident memory ${at}`, `${residentMb.toFixed(0)} MB`, `< ${GOALS.residentMb} MB`, met);
}

async function addExpiry(engine: BenchEngine, plan: Plan, report: Report): Promise<void> {
  const { name } = engine;
  const sessions = plan.expiring;
  report.progress(`${name}: filling ${sessions} sessions that expire together`);
  const { store } = await engine.fill({ sessions, expireAt: Date.now() }, () => undefined);
  report.progress(`${name}: ending them`);
  const cost = await measureExpiry(store, sessions);
  const { seconds, lagP99, others, othersP99 } = cost;
  const what = `ending ${count(sessions)} sessions that expire together`;
  report.add(name, what, `${seconds.toFixed(1)} s`, `< ${GOALS.expirySeconds} s`, seconds < GOALS.expirySeconds);
  report.add(name, '  event loop lag p99', `${lagP99.toFixed(1)} ms`, `< ${GOALS.lagMs} ms`, lagP99 < GOALS.lagMs);
  report.add(name, '  messages of others meanwhile', `${others} (p99 ${othersP99.toFixed(0)} ms)`);
}

function count(n: number): string {
  if (n >= 1_000_000) return `${n / 1_000_000} M`;
  return n >= 1000 ? `${n / 1000} k` : String(n);
}

await main();
