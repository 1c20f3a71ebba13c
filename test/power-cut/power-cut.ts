import { accessSync, constants, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { readLog } from './log.ts';
import { between, seededRandom } from './random.ts';
import { record } from './record.ts';
import type { Verdict, VerifyTask } from './verify-worker.ts';
import { loadWorkload, type WorkloadOptions } from './workload.ts';

const SHARED_MEMORY = '/dev/shm';
/** A log is about 50 MB and an image a few; containers often have a /dev/shm of 64 MB, which would run full. */
const SCRATCH_BYTES = 512 * 2 ** 20;

export interface PowerCutOptions extends WorkloadOptions {
  workload: string;
  /** Crash points to draw; each is tried under every loss model. */
  points: number;
  /** Leaves the log and the images with violations behind, for a closer look. */
  keep: boolean;
}

export interface PowerCutReport {
  operations: number;
  verdicts: Verdict[];
  /** Where the log and the violating images are, when they were to be kept. */
  kept: string | undefined;
}

/** Records one run of the workload, then cuts the power at random points of it and verifies what each cut leaves. */
export async function runPowerCuts(
  options: PowerCutOptions,
  progress: (line: string) => void = () => {},
): Promise<PowerCutReport> {
  // Before anything is recorded: a name nobody knows is the caller's mistake, not the recorded process's.
  await loadWorkload(options.workload);
  const scratch = mkdtempSync(join(scratchParent(), 'moirai-power-cut-'));
  try {
    const workloadProcess = join(import.meta.dirname, 'workload.ts');
    const { workload, synchronous, seed, commits } = options;
    const settings = JSON.stringify({ synchronous, seed, commits } satisfies WorkloadOptions);
    const { log } = record(scratch, (directory) => [workloadProcess, workload, directory, settings]);
    const operations = readLog(log).length;
    progress(`recorded ${operations} operations`);
    const points = drawPoints(operations, options.points, seed);
    const verdicts = await verifyInParallel(points, log, scratch, options, progress);
    return { operations, verdicts, kept: options.keep ? scratch : undefined };
  } finally {
    if (!options.keep) rmSync(scratch, { recursive: true });
  }
}

/** Memory, where there is enough: nothing here depends on the speed or the syncs of the disk under the harness. */
function scratchParent(): string {
  try {
    accessSync(SHARED_MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(SHARED_MEMORY);
    return bavail * bsize >= SCRATCH_BYTES ? SHARED_MEMORY : tmpdir();
  } catch {
    // No /dev/shm, or not for us: a disk does as well, only slower.
    return tmpdir();
  }
}

/**
 * Draws distinct points, in rising order. One in ten is from the first or last hundredth of the run, where files are
 * created and removed, which a uniform draw would hardly meet.
 */
function drawPoints(operations: number, count: number, seed: number): number[] {
  const random = seededRandom(seed, operations);
  const edge = Math.ceil(operations / 100);
  const points = new Set<number>();
  while (points.size < Math.min(count, operations)) {
    const kind = random();
    if (kind < 0.05) points.add(between(random, 0, edge));
    else if (kind < 0.1) points.add(between(random, operations - edge, operations));
    else points.add(between(random, 0, operations));
  }
  return [...points].sort((a, b) => a - b);
}

async function verifyInParallel(
  points: number[],
  log: string,
  scratch: string,
  options: PowerCutOptions,
  progress: (line: string) => void,
): Promise<Verdict[]> {
  const images = join(scratch, 'images');
  mkdirSync(images);
  const verdicts: Verdict[] = [];
  const workers = availableParallelism();
  const step = Math.max(1, Math.ceil(points.length / 10) * 3);
  const collect = (verdict: Verdict): void => {
    verdicts.push(verdict);
    if (verdicts.length % step === 0) progress(`verified ${verdicts.length} of ${points.length * 3} images`);
  };
  await Promise.all(
    Array.from({ length: workers }, (_, worker) =>
      verifyInWorker(
        {
          log,
          scratch: images,
          workload: options.workload,
          seed: options.seed,
          // Interleaved, so that the late points, whose images are the largest, are shared out evenly.
          points: points.filter((_, position) => position % workers === worker),
          keepViolating: options.keep,
        },
        collect,
      ),
    ),
  );
  return verdicts.sort((a, b) => a.point - b.point);
}

function verifyInWorker(task: VerifyTask, collect: (verdict: Verdict) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./verify-worker.ts', import.meta.url), { workerData: task });
    worker.on('message', collect);
    worker.on('error', reject);
    worker.on('exit', () => resolve());
  });
}
