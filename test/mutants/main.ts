import { spawn } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ACCEPTANCE_MUTANTS } from './acceptance-mutants.ts';
import { CENTRE_MUTANTS, layerOf, type Mutant } from './mutants.ts';
import { PEOPLE_MUTANTS } from './people-mutants.ts';
import { PLATFORM_MUTANTS } from './platform-mutants.ts';
import { POISON_MUTANTS } from './poison-mutants.ts';
import { SENTENCE_MUTANTS } from './sentence-mutants.ts';
import { STORE_MUTANTS } from './store-mutants.ts';

const ROOT = join(import.meta.dirname, '..', '..');

const MUTANTS: readonly Mutant[] = [
  ...CENTRE_MUTANTS,
  ...STORE_MUTANTS,
  ...ACCEPTANCE_MUTANTS,
  ...POISON_MUTANTS,
  ...PEOPLE_MUTANTS,
  ...SENTENCE_MUTANTS,
  ...PLATFORM_MUTANTS,
  ...(await mutantsOfPlatforms()),
];

const VITEST = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
const TIME_LIMIT_MS = 300_000;
/** A failed comparison of long lists is megabytes long, and the finding stands before it. */
const MAX_OUTPUT = 32_000_000;
const USAGE = `Puts deliberate bugs into copies of the source and runs the layer of proof that must catch each.

  npm run mutants -- [--only TEXT] [--jobs 4] [--json]
`;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    jobs: { type: 'string', default: '4' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

interface Verdict {
  readonly mutant: Mutant;
  readonly caught: boolean;
  readonly seconds: number;
  readonly evidence: string;
}

/** Those of each platform stand beside its tests. */
async function mutantsOfPlatforms(): Promise<Mutant[]> {
  const files = globSync('test/platforms/*/mutants.ts', { cwd: ROOT }).sort();
  const loaded = files.map((file) => import(join(ROOT, file)) as Promise<{ MUTANTS: readonly Mutant[] }>);
  return (await Promise.all(loaded)).flatMap(({ MUTANTS }) => MUTANTS);
}

/** A copy of the source with the bug in it, inside the project so that its packages are found. */
function plant(mutant: Mutant): string {
  const place = join(ROOT, '.mutants', mutant.name.replaceAll(/[^a-z0-9]+/gi, '-'));
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  // With their times: the page is built already, and is not built again for a copy of its sources.
  for (const part of [
    'bin',
    'src',
    'test',
    'scripts',
    'web',
    'docs',
    'package.json',
    'vitest.config.ts',
    'tsconfig.json',
  ])
    cpSync(join(ROOT, part), join(place, part), { recursive: true, preserveTimestamps: true });
  const path = join(place, mutant.file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    source.replace(mutant.find, () => mutant.replace),
  );
  return place;
}

/** Says so before anything is run if the place of a mutant is not there, or not one. */
function assertPlaces(mutants: readonly Mutant[]): void {
  const lost = mutants.flatMap(({ name, file, find }) => {
    const places = readFileSync(join(ROOT, file), 'utf8').split(find).length - 1;
    return places === 1 ? [] : [`mutant "${name}": its text is ${places} times in ${file}`];
  });
  if (lost.length > 0) throw new TypeError(lost.join('\n'));
}

async function hunt(mutant: Mutant): Promise<Verdict> {
  const place = plant(mutant);
  const layer = layerOf(mutant);
  const started = performance.now();
  const { code, output } = await run(
    place,
    layer.args.map((arg) => (arg === 'VITEST' ? VITEST : arg)),
  );
  const seconds = (performance.now() - started) / 1000;
  rmSync(place, { recursive: true, force: true });
  // A layer that merely falls over has found nothing: it must say what it found.
  const caught = code !== 0 && layer.finding.test(output);
  const lines = output
    .split('\n')
    .filter((line) =>
      /never|says|violation|seed \d+:|drained|e\.g\.|Counterexample|TypeError|\d+ passed, \d+ failed/.test(line),
    );
  return { mutant, caught, seconds, evidence: (lines.at(-1) ?? output.slice(-300)).trim().slice(0, 160) };
}

function run(cwd: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
  return new Promise((done) => {
    const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined };
    const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (data: Buffer): void => {
      output = (output + data.toString()).slice(-MAX_OUTPUT);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const timer = setTimeout(() => child.kill('SIGKILL'), TIME_LIMIT_MS);
    child.on('close', (code) => {
      clearTimeout(timer);
      done({ code, output });
    });
  });
}

async function main(): Promise<number> {
  const chosen = MUTANTS.filter((mutant) => mutant.name.includes(values.only));
  assertPlaces(chosen);
  const waiting = [...chosen];
  const verdicts: Verdict[] = [];
  const worker = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const verdict = await hunt(mutant);
      verdicts.push(verdict);
      if (!values.json) console.log(describe(verdict));
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, Number(values.jobs)) }, worker));
  const survivors = verdicts.filter(({ caught }) => !caught);
  if (values.json) console.log(JSON.stringify(verdicts, null, 2));
  console.log(`${chosen.length} mutants, ${chosen.length - survivors.length} caught, ${survivors.length} survived`);
  return survivors.length === 0 && chosen.length > 0 ? 0 : 1;
}

function describe({ mutant, caught, seconds, evidence }: Verdict): string {
  const mark = caught ? 'caught  ' : 'SURVIVED';
  const layer = typeof mutant.layer === 'string' ? mutant.layer : mutant.layer.file;
  return `${mark} ${mutant.name.padEnd(58)} ${layer.padEnd(11)} ${seconds.toFixed(1).padStart(6)} s  ${evidence}`;
}

if (values.help) console.log(USAGE);
else process.exitCode = await main();
