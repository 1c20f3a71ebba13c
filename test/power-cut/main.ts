// npm run power-cut -- [--points 300] [--seed 1] [--synchronous FULL|NORMAL] [--workload raw|store] [--commits 3000] [--keep]
import { parseArgs } from 'node:util';
import { type PowerCutReport, runPowerCuts } from './power-cut.ts';
import { whyNoRecorder } from './record.ts';
import { LOSS_MODELS } from './replay.ts';

const EXAMPLES = 5;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      points: { type: 'string', default: '300' },
      seed: { type: 'string', default: '1' },
      synchronous: { type: 'string', default: 'FULL' },
      workload: { type: 'string', default: 'raw' },
      commits: { type: 'string', default: '3000' },
      keep: { type: 'boolean', default: false },
    },
  });
  const missing = whyNoRecorder();
  if (missing !== undefined) {
    console.log(`power-cut replay SKIPPED: ${missing}`);
    return process.env.MOIRAI_TEST_ALL === '1' ? 1 : 0;
  }
  const { synchronous } = values;
  if (synchronous !== 'FULL' && synchronous !== 'NORMAL') {
    console.error(`--synchronous is FULL or NORMAL, not ${synchronous}`);
    return 2;
  }
  const started = performance.now();
  const report = await runPowerCuts(
    {
      workload: values.workload,
      synchronous,
      seed: wholeNumber('seed', values.seed),
      points: wholeNumber('points', values.points),
      commits: wholeNumber('commits', values.commits),
      keep: values.keep,
    },
    console.log,
  );
  console.log(`\nworkload ${values.workload}, synchronous ${synchronous}, seed ${values.seed}`);
  summarize(report);
  console.log(`${((performance.now() - started) / 1000).toFixed(1)} s`);
  return report.verdicts.some(({ violations }) => violations.length > 0) ? 1 : 0;
}

function summarize({ verdicts, kept }: PowerCutReport): void {
  for (const model of LOSS_MODELS) {
    const images = verdicts.filter((verdict) => verdict.model === model);
    const violating = images.filter(({ violations }) => violations.length > 0);
    const worst = Math.max(0, ...images.map(({ violations }) => violations.length));
    console.log(
      `${model.padEnd(6)}  ${images.length} images  ${violating.length} with violations  ${worst} in the worst`,
    );
  }
  const violating = verdicts.filter(({ violations }) => violations.length > 0);
  console.log(`${new Set(violating.map(({ point }) => point)).size} crash points with violations`);
  for (const { point, model, violations } of violating.slice(0, EXAMPLES)) {
    console.log(`  e.g. operation ${point}, ${model}: ${violations[0]}`);
  }
  if (kept !== undefined) console.log(`log and violating images: ${kept}`);
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} is not a whole number: ${text}`);
  return value;
}

process.exitCode = await main();
