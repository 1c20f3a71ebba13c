import { readdirSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { GatewayProcess } from '../test/gateway/process.ts';
import { HttpConnection } from './http-connection.ts';
import { type Rate, rateOf } from './load.ts';
import { startModelProcess } from './model-process.ts';

const USAGE = `npm run bench:compare -- --base DIR [--rounds 2] [--seconds 6] [--json]

Runs the gateway of this tree and that of another checkout (with its node_modules) one after the other, A B B A in each
round, under the same load, and prints what this one takes as a share of what the other takes.`;

/** Code is compiled by use: both begin after the same number of turns. */
const WARM_TURNS = 1500;
const MODEL_MS = 1500;
/** What a start leaves behind is collected, or it is not: both count, so it is looked at after a moment. */
const SETTLE_MS = 2000;
const MANY = 16;
/** A conversation is left behind after so many turns: who is faster must not get longer transcripts for it. */
const TURNS_PER_CONVERSATION = 20;
const CONVERSATIONS_AT_ONCE = 5;

/** What one run of one gateway showed. */
interface Seen {
  readonly readyMs: number;
  readonly startMb: number;
  readonly single: Load;
  readonly many: Load;
  readonly loadMb: number;
}

interface Load {
  readonly perSecond: number;
  /** What the client waited for less what the model takes, at p50 of the model. */
  readonly overheadP50: number;
  readonly overheadP99: number;
  /** Milliseconds of CPU for each turn: of the thread that runs the event loop, and of all threads. */
  readonly mainCpu: number;
  readonly cpu: number;
}

const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    rounds: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '6' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<void> {
  if (values.help || values.base === undefined) {
    process.stdout.write(`${USAGE}\n`);
    if (!values.help) process.exitCode = 1;
    return;
  }
  const Base = await gatewayOf(resolve(values.base));
  const model = await startModelProcess();
  const seen = { this: [] as Seen[], base: [] as Seen[] };
  for (let round = 1; round <= Number(values.rounds); round++) {
    for (const side of ['this', 'base', 'base', 'this'] as const) {
      const run = await measure(side === 'this' ? GatewayProcess : Base, model.url, Number(values.seconds) * 1000);
      seen[side].push(run);
      const { single, many } = run;
      process.stderr.write(
        `round ${round} ${side}: ${single.perSecond.toFixed(0)} and ${many.perSecond.toFixed(0)} turns/s, ` +
          `${many.mainCpu.toFixed(2)} ms of the main thread each\n`,
      );
    }
  }
  model.close();
  const figures = FIGURES.map(([what, read]) => compared(what, seen.this.map(read), seen.base.map(read)));
  process.stdout.write(values.json ? `${JSON.stringify({ figures, runs: seen }, null, 2)}\n` : table(figures));
}

/** A checkout starts its own gateway, with its own flags. */
async function gatewayOf(folder: string): Promise<typeof GatewayProcess> {
  const file = join(folder, 'test', 'gateway', 'process.ts');
  return ((await import(file)) as { GatewayProcess: typeof GatewayProcess }).GatewayProcess;
}

async function measure(Gateway: typeof GatewayProcess, modelUrl: string, ms: number): Promise<Seen> {
  const gateway = new Gateway({
    model: { base_url: modelUrl, name: 'fake-model', api_key: 'key', context_window: 4_000_000 },
    log: { level: 'warn' },
  });
  try {
    const readyMs = await gateway.start();
    await sleep(SETTLE_MS);
    const startMb = residentMb(gateway.pid);
    await talk(gateway, MANY, (turns) => turns >= WARM_TURNS, 'warm');
    const bare = await askModel(modelUrl, MODEL_MS);
    const many = await load(gateway, MANY, ms, bare.p50);
    const single = await load(gateway, 1, ms, bare.p50);
    return { readyMs, startMb, single, many, loadMb: residentMb(gateway.pid) };
  } finally {
    await gateway.close();
  }
}

async function load(gateway: GatewayProcess, clients: number, ms: number, modelMs: number): Promise<Load> {
  const before = cpuMs(gateway.pid);
  const end = performance.now() + ms;
  const isOver = (): boolean => performance.now() > end;
  const { turns, perSecond, p50, p99 } = await talk(gateway, clients, isOver, `load-${clients}`);
  const after = cpuMs(gateway.pid);
  return {
    perSecond,
    overheadP50: p50 - modelMs,
    overheadP99: p99 - modelMs,
    mainCpu: (after.main - before.main) / turns,
    cpu: (after.all - before.all) / turns,
  };
}

/** Turns over HTTP, one after the other for each client, over many short conversations. */
async function talk(
  gateway: GatewayProcess,
  clients: number,
  isOver: (turns: number) => boolean,
  name: string,
): Promise<Rate & { turns: number }> {
  const latencies: number[] = [];
  const began = performance.now();
  const client = async (c: number): Promise<void> => {
    const connection = await HttpConnection.to(gateway.url);
    for (let turn = 0; !isOver(latencies.length); turn++) {
      const generation = Math.floor(turn / (CONVERSATIONS_AT_ONCE * TURNS_PER_CONVERSATION));
      const conversation = `${name}-${c}-${generation}-${turn % CONVERSATIONS_AT_ONCE}`;
      const sent = performance.now();
      const answer = await connection.post('/v1/chat', { text: 'hello', conversation });
      latencies.push(performance.now() - sent);
      if (!answer.includes('Here you are.')) throw new TypeError(`the gateway answered ${answer}`);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: clients }, (_, c) => client(c)));
  return { turns: latencies.length, ...rateOf(latencies, performance.now() - began) };
}

/** The same question put to the model server by nobody in between: what a turn costs without a gateway. */
async function askModel(url: string, ms: number): Promise<Rate> {
  const latencies: number[] = [];
  const began = performance.now();
  const agent = new Agent({ keepAlive: true });
  const body = JSON.stringify({ model: 'fake-model', stream: true, messages: [{ role: 'user', content: 'hello' }] });
  while (performance.now() - began < ms) {
    const sent = performance.now();
    await new Promise<void>((resolve, reject) => {
      const asked = request(`${url}/chat/completions`, { agent, method: 'POST' }, (response) => {
        response.resume().on('end', resolve).on('error', reject);
      });
      asked.on('error', reject);
      asked.end(body);
    });
    latencies.push(performance.now() - sent);
  }
  agent.destroy();
  return rateOf(latencies, performance.now() - began);
}

/** CPU time of a process and of its main thread, as the scheduler counts it. */
function cpuMs(pid: number): { main: number; all: number } {
  const of = (thread: string): number => {
    try {
      return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
    } catch {
      // It ended between the listing and the look.
      return 0;
    }
  };
  const all = readdirSync(`/proc/${pid}/task`).map(of);
  return { main: of(String(pid)), all: all.reduce((sum, ms) => sum + ms, 0) };
}

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

type Figure = readonly [what: string, read: (seen: Seen) => number];

const FIGURES: readonly Figure[] = [
  ['turns/s, 1 conversation at a time', ({ single }) => single.perSecond],
  [`turns/s, ${MANY} at once`, ({ many }) => many.perSecond],
  ['main-thread CPU of a turn, 1 at a time (ms)', ({ single }) => single.mainCpu],
  [`main-thread CPU of a turn, ${MANY} at once (ms)`, ({ many }) => many.mainCpu],
  ['process CPU of a turn, 1 at a time (ms)', ({ single }) => single.cpu],
  [`process CPU of a turn, ${MANY} at once (ms)`, ({ many }) => many.cpu],
  ['overhead of a turn, p50 (ms)', ({ single }) => single.overheadP50],
  ['overhead of a turn, p99 (ms)', ({ single }) => single.overheadP99],
  ['resident memory after start (MB)', ({ startMb }) => startMb],
  ['resident memory after the load (MB)', ({ loadMb }) => loadMb],
  ['ready after (ms)', ({ readyMs }) => readyMs],
];

interface Compared {
  readonly what: string;
  readonly here: number;
  readonly base: number;
  readonly ratio: number;
  /** The least and the most of what neighbouring runs gave. */
  readonly range: readonly [least: number, most: number];
}

/** Runs are compared with their neighbours: the machine is not the same from one minute to the next. */
function compared(what: string, here: readonly number[], base: readonly number[]): Compared {
  const ratios = here.map((value, i) => value / (base[i] ?? Number.NaN)).sort((a, b) => a - b);
  const range = [ratios.at(0) ?? Number.NaN, ratios.at(-1) ?? Number.NaN] as const;
  return { what, here: median(here), base: median(base), ratio: median(ratios), range };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

function table(figures: readonly Compared[]): string {
  const rows = figures.map(({ what, here, base, ratio, range: [least, most] }) => {
    return `| ${what} | ${short(base)} | ${short(here)} | x ${ratio.toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)}) |`;
  });
  return ['| figure | base | this | ratio |', '|---|---|---|---|', ...rows, ''].join('\n');
}

const short = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toFixed(2));

await main();
