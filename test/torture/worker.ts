// One process of the torture test: opens the store, takes part, and does things at random until it is killed.
import { flushCompileCache } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../../src/engine/engine.ts';
import { isLeaseLost } from '../../src/engine/instance.ts';
import { hasCode } from '../../src/errors/moirai-error.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/port.ts';
import { between, type Random, seededRandom } from '../power-cut/random.ts';
import { drawDeed, finishRun, haunt } from './deeds.ts';
import { ackFile } from './journal.ts';
import { type FromWorker, RULES, type ToWorker, type WorkerTask } from './settings.ts';
import { type Faults, makeSubscribers } from './subscribers.ts';
import { Tenure } from './tenure.ts';
import { Workload } from './workload.ts';

/** Things a process does at the same time, and how long each pauses in between at most. */
const ACTORS = 6;
const PAUSE_MS = 25;

async function main(task: WorkerTask): Promise<void> {
  const orders = listen();
  const random = seededRandom(task.seed, 2, task.worker, task.incarnation);
  const faults: Faults = { on: !task.sweeper };
  const store = await open(task);
  const journal = ackFile(task.directory, task.worker, task.incarnation);
  const tenure = await Tenure.begin(store, task, journal, makeSubscribers(task, random, faults), faults);
  const workload = new Workload(tenure, task, journal, random);
  tell({ say: 'ready' });
  flushCompileCache(); // It would be written at the end of the process, which is a SIGKILL.
  if (task.sweeper) await sweep(workload);
  else await work(workload, random, orders.drain);
  faults.on = false;
  await quieten(workload);
  tell({ say: 'quiet' });
  await orders.stop;
  await tenure.stop();
  await store.close();
  // Nothing may keep the process alive now: whoever started it waits for its end.
  process.disconnect();
}

function listen(): { drain: Promise<void>; stop: Promise<void> } {
  const drain = Promise.withResolvers<void>();
  const stop = Promise.withResolvers<void>();
  process.on('message', ({ say }: ToWorker) => (say === 'drain' ? drain : stop).resolve());
  // Whoever started us is gone: there is nobody to work for.
  process.on('disconnect', () => setTimeout(() => process.exit(1), 10_000).unref());
  return { drain: drain.promise, stop: stop.promise };
}

function tell(message: FromWorker): void {
  process.send?.(message);
}

async function open(task: WorkerTask): Promise<Store> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await openStore(task.url, task.directory, RULES);
    } catch (thrown) {
      // A server that was just crashed takes its time.
      if (!task.serverCrashes || !hasCode(thrown, 'store_unreachable') || attempt > 100) throw thrown;
      await sleep(100);
    }
  }
}

async function work(workload: Workload, random: Random, drain: Promise<void>): Promise<void> {
  let working = true;
  void drain.then(() => {
    working = false;
  });
  const act = async (): Promise<void> => {
    while (working) {
      await drawDeed(random)(workload);
      await sleep(between(random, 0, PAUSE_MS));
    }
  };
  await Promise.all(Array.from({ length: ACTORS }, act));
}

async function sweep({ tenure }: Workload): Promise<void> {
  await tenure.engine.reap();
  for (const { name } of await tenure.store.read('listSubscribers', {})) {
    await tenure.store.write('replay', { subscriber: name, fromSeq: null });
  }
  for (const { id } of await tenure.store.read('listJobs', { madeIn: null })) {
    await tenure.store.write('removeJob', { id });
  }
  while (Object.keys(await tenure.store.read('countDeliveries', {})).length > 0) await sleep(60);
}

/** Finishes half of what it holds, and makes sure that it holds what the rows say it holds. */
async function quieten(workload: Workload): Promise<void> {
  for (const run of workload.runs.splice(0, Math.ceil(workload.runs.length / 2))) await finishRun(workload, run);
  for (let i = 0; i < 4; i++) await haunt(workload);
  await agreeOnHolds(workload);
}

async function unknownHolds(engine: Engine): Promise<string[]> {
  const { sessions } = await engine.store.read('heldBy', { instance: engine.instance });
  const held = new Set(engine.holds.map((hold) => hold.sessionId));
  return sessions.map(({ id }) => id).filter((id) => !held.has(id));
}

/** What the rows say it holds and it does not know of, after a look that settles such. */
async function reconciled(engine: Engine): Promise<string[]> {
  await engine.reconcile();
  return unknownHolds(engine);
}

async function agreeOnHolds(workload: Workload): Promise<void> {
  const { engine } = workload.tenure;
  try {
    // A conversation that somebody writes to just now is left to the next look, and the run of a job may begin at any
    // moment: its answer is on the way. What no look settles is lost.
    let unknown = await reconciled(engine);
    for (let i = 0; unknown.length > 0 && i < 20; i++) {
      await sleep(100);
      const still = await reconciled(engine);
      unknown = unknown.filter((id) => still.includes(id));
    }
    if (unknown.length > 0) workload.wrong(`${engine.instance} owns ${unknown.join(', ')} and does not know`);
  } catch (thrown) {
    if (!isLeaseLost(thrown)) throw thrown;
    // The successor has nothing yet, and whoever reaps settles the rest.
    await workload.tenure.renew(engine);
  }
}

await main(JSON.parse(process.argv[2] ?? '{}') as WorkerTask);
