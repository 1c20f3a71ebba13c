import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { readLog } from './log.ts';
import { seededRandom } from './random.ts';
import { type Image, LOSS_MODELS, type LossModel, Replay } from './replay.ts';
import { loadWorkload } from './workload.ts';

/** What a worker is given. Each rolls its own replay forward, which is cheaper than handing images over. */
export interface VerifyTask {
  log: string;
  scratch: string;
  workload: string;
  seed: number;
  /** Rising. */
  points: number[];
  keepViolating: boolean;
}

/** What a worker reports of each image. */
export interface Verdict {
  point: number;
  model: LossModel;
  violations: string[];
}

async function verifyPoints(task: VerifyTask, report: (verdict: Verdict) => void): Promise<void> {
  const workload = await loadWorkload(task.workload);
  const replay = new Replay(readLog(task.log));
  for (const point of task.points) {
    replay.advance(point);
    for (const [salt, model] of LOSS_MODELS.entries()) {
      const directory = join(task.scratch, `${point}-${model}`);
      writeImage(directory, replay.image(model, seededRandom(task.seed, point, salt)));
      const violations = await workload.verify(directory, replay.acked());
      if (violations.length === 0 || !task.keepViolating) rmSync(directory, { recursive: true });
      report({ point, model, violations });
    }
  }
}

function writeImage(directory: string, image: Image): void {
  mkdirSync(directory);
  for (const [path, contents] of image) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), contents);
  }
}

if (parentPort !== null) {
  const port = parentPort;
  await verifyPoints(workerData as VerifyTask, (verdict) => port.postMessage(verdict));
}
