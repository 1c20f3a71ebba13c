import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { startPostgres } from '../support/postgres.ts';
import { runModel } from './model.ts';
import { addOutcome, describe, emptySummary, runSeeds, type SeedSummary } from './run-seeds.ts';
import { postgresStores, SqliteFiles } from './stores.ts';
import type { Outcome } from './world.ts';

const USAGE = `Runs simulated histories against the real store.

  npm run simulate -- [--seeds 20000] [--from 1] [--commands 2000000] [--engine sqlite|postgres] [--jobs N]

  --seeds     simulations of several processes with crashes, pauses and lost replies (0: none)
  --commands  commands of the model-based test, in random histories (0: none)
  --from      the first seed; --seeds 1 --from S repeats one
  --stop      at the first seed that fails
`;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20000' },
    from: { type: 'string', default: '1' },
    commands: { type: 'string', default: '2000000' },
    engine: { type: 'string', default: 'sqlite' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    stop: { type: 'boolean', default: false },
    worker: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
const from = Number(values.from);
const seeds = Number(values.seeds);
const commands = Number(values.commands);
const jobs = values.engine === 'postgres' ? 1 : Math.max(1, Number(values.jobs));

function* share(job: number): Generator<number> {
  for (let seed = from + job; seed < from + seeds; seed += jobs) yield seed;
}

/** A worker process simulates its share and sends every outcome to its parent. */
async function work(): Promise<void> {
  const files = new SqliteFiles();
  try {
    const seedsOfJob = share(Number(process.env.MOIRAI_SIM_JOB));
    await runSeeds(seedsOfJob, files.open, (outcome) => {
      process.send?.(outcome);
      if (values.stop && outcome.violations.length > 0) seedsOfJob.return(undefined);
    });
  } finally {
    files.remove();
  }
}

async function simulateInParallel(tell: (summary: SeedSummary) => void): Promise<SeedSummary> {
  const summary = emptySummary();
  const runs = Array.from({ length: jobs }, (_, job) => {
    const child = fork(import.meta.filename, [...process.argv.slice(2), '--worker'], {
      env: { ...process.env, MOIRAI_SIM_JOB: String(job) },
    });
    child.on('message', (outcome: Outcome) => {
      addOutcome(summary, outcome);
      tell(summary);
    });
    return new Promise<void>((done, failed) => {
      child.on('exit', (code) => (code === 0 ? done() : failed(new TypeError(`a worker exited with ${code}`))));
    });
  });
  await Promise.all(runs);
  return summary;
}

async function simulateOnPostgres(tell: (summary: SeedSummary) => void): Promise<SeedSummary> {
  const server = await startPostgres();
  const summary = emptySummary();
  try {
    await runSeeds(share(0), postgresStores(server.url), (outcome) => {
      addOutcome(summary, outcome);
      tell(summary);
    });
  } finally {
    await server.stop();
  }
  return summary;
}

function progress(): (summary: SeedSummary) => void {
  let next = Date.now() + 5000;
  let told = 0;
  return (summary) => {
    for (const { seed, violations } of summary.failures.slice(told)) console.log(`seed ${seed}: ${violations[0]}`);
    told = summary.failures.length;
    if (Date.now() < next) return;
    next = Date.now() + 5000;
    console.log(`  ${describe(summary)}`);
  };
}

async function main(): Promise<number> {
  let failed = false;
  if (seeds > 0) {
    const summary = await (values.engine === 'postgres'
      ? simulateOnPostgres(progress())
      : simulateInParallel(progress()));
    console.log(`simulation on ${values.engine}: ${describe(summary)}`);
    for (const { seed, violations } of summary.failures) console.log(`seed ${seed}:\n  ${violations.join('\n  ')}`);
    failed ||= summary.failures.length > 0 || summary.seeds !== seeds;
  }
  if (commands > 0) {
    const result = await runModel({ commands, seed: from, tell: (done) => console.log(`  ${done} commands`) });
    console.log(
      `model: ${result.commands} commands in ${result.histories} histories, ${result.failure ?? 'all as the model says'}`,
    );
    failed ||= result.failure !== null;
  }
  return failed ? 1 : 0;
}

if (values.help) console.log(USAGE);
else if (values.worker) await work();
else process.exitCode = await main();
