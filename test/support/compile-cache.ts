import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** What threads begin with. In the main thread they do nothing. */
const THREADS = ['src/store/sqlite/worker.ts'];

/**
 * Vitest's global setup: sources are stripped of their types once, and every process and thread of the run reads the
 * result. Node strips with WebAssembly, and V8 can crash (SIGSEGV) where several threads of one process begin or end
 * such code at the same moment; tests start thousands of threads. What is published is built, and has nothing to strip.
 */
export function setup(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  process.env.NODE_COMPILE_CACHE ??= `${root}node_modules/.cache/moirai-compiled`; // the test processes inherit it
  for (const file of THREADS) execFileSync(process.execPath, [file], { cwd: root });
}
