import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Outcome } from './cli-fixture.ts';
import type { Reply, Request } from './resident-main.ts';

const MAIN = fileURLToPath(new URL('./resident-main.ts', import.meta.url));
let child: ChildProcess | null = null;
let errors = '';
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command line of `moirai` in a process that stays for the next one. Most of what a short command costs is the start
 * of its process: where a test only looks at what another process has done, it need not pay for that.
 */
export function runResident(request: Request): Promise<Outcome> {
  const outcome = last.then(() => run(request));
  last = outcome.catch(() => undefined);
  return outcome;
}

async function run(request: Request): Promise<Outcome> {
  child ??= start();
  errors = '';
  const answered = once(child, 'message', { signal: AbortSignal.timeout(60_000) });
  child.send(request);
  const [{ code, output }] = (await answered) as [Reply];
  return { code, signal: null, output, errors };
}

function start(): ChildProcess {
  const { MOIRAI_DEBUG: _, ...env } = process.env;
  const started = fork(MAIN, { env, execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  started.stderr?.on('data', (bytes: Buffer) => {
    errors += bytes.toString();
  });
  started.once('exit', (code) => {
    if (child === started) child = null;
    started.emit('error', new TypeError(`the resident process exited with ${code}: ${errors}`));
  });
  return started;
}
