import { fileURLToPath } from 'node:url';
import { ExecutableHandler } from './executable-handler.ts';
import type { Handler, HandlerDeps } from './handler.ts';
import { HandlerPool } from './handler-pool.ts';
import type { HandlerFile } from './hook-kind.ts';
import { PYTHON_RUNNER } from './python-runner.ts';

/** A file in TypeScript is run as it is, with its types taken off. */
const NODE_OPTIONS = [
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON',
  '--max-old-space-size=512',
];

/** What runs a handler of this kind. Nothing is started before the first event. */
export function makeHandler({ kind, file, command }: HandlerFile, deps: HandlerDeps): Handler {
  if (kind === 'executable') return new ExecutableHandler(command, deps);
  // -B: a cache of compiled code has no place in the hook's folder; -u: what it prints is seen at once.
  if (kind === 'python') return new HandlerPool([...command, '-B', '-u', '-c', PYTHON_RUNNER], file, deps);
  const worker = import.meta.url.endsWith('.ts') ? './node-worker.ts' : './node-worker.js';
  const runner = fileURLToPath(new URL(worker, import.meta.url));
  return new HandlerPool([process.execPath, ...NODE_OPTIONS, runner], file, deps);
}
