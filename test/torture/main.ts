// npm run torture -- [--kills 300] [--seed 1] [--engine sqlite|postgres] [--workers 4] [--crash-server] [--keep]
import { parseArgs } from 'node:util';
import { runTorture, type TortureReport } from './run.ts';

const SERVER_CRASHES = 5;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '100' },
      seed: { type: 'string', default: '1' },
      engine: { type: 'string', default: 'sqlite' },
      workers: { type: 'string', default: '4' },
      'crash-server': { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
    },
  });
  const { engine } = values;
  const crash = values['crash-server'];
  if ((engine !== 'sqlite' && engine !== 'postgres') || (crash && engine !== 'postgres')) {
    console.error('--engine is sqlite or postgres, and --crash-server needs postgres');
    return 2;
  }
  const options = {
    engine,
    kills: wholeNumber('kills', values.kills),
    seed: wholeNumber('seed', values.seed),
    workers: wholeNumber('workers', values.workers),
    serverCrashes: crash ? SERVER_CRASHES : 0,
    keep: values.keep,
  } as const;
  console.log(`torture: ${engine}, ${options.kills} kills, seed ${options.seed}, ${options.workers} workers`);
  const report = await runTorture(options, console.log);
  summarize(report);
  return report.violations.length === 0 ? 0 : 1;
}

function summarize({ figures, kills, violations, seconds, evidence }: TortureReport): void {
  const list = (counts: Iterable<[string, number]>): string =>
    [...counts]
      .sort(([, a], [, b]) => b - a)
      .map(([name, n]) => `${name} ${n}`)
      .join(', ');
  console.log(`acknowledged: ${list(figures.byOp)}`);
  console.log(`refused: ${list(figures.byCode)}`);
  console.log(`ended: ${list(Object.entries(figures.ended))}`);
  for (const line of violations) console.log(`VIOLATION ${line}`);
  if (evidence !== undefined) console.log(`evidence: ${evidence}`);
  const { delivered } = figures;
  console.log(
    [
      `${kills.killed} SIGKILL, ${kills.paused} SIGSTOP, ${kills.crashed} server crashes in ${seconds} s`,
      `${figures.boots} instances`,
      `${figures.sessions} sessions (${figures.open} open)`,
      `${figures.turns} turns`,
      `${figures.acks} acks, ${figures.refused} refusals`,
      `${figures.events} events`,
      `${delivered.total} deliveries (${delivered.repeated} repeated, ${delivered.dead} given up and replayed)`,
      `${figures.replies} replies`,
      violations.length === 0 ? '0 violations' : 'VIOLATIONS',
    ].join('; '),
  );
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} is not a whole number: ${text}`);
  return value;
}

process.exitCode = await main();
