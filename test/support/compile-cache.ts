import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** What processes and threads begin with. To import it does nothing but to read the code. */
const ENTRANCES = ['src/cli/program.ts', 'src/cli/commands/**/*.ts', 'src/store/sqlite/worker.ts'];

/**
 * Vitest's global setup: sources are stripped of their types once, and every process and thread of the run reads the
 * result. Node strips with WebAssembly, and V8 can crash (SIGSEGV) where several threads of one process begin or end
 * such code at the same moment; tests start thousands of threads. What is published is built, and has nothing to strip.
 */
export function setup(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  // Where `bin/moirai.js` keeps it too; the test processes inherit it.
  process.env.NODE_COMPILE_CACHE = `${root}node_modules/.cache/moirai`;
  const files = globSync(ENTRANCES, { cwd: root, exclude: ['**/*.test.ts'] });
  const code = files.map((file) => `await import('./${file}');`).join('\n');
  execFileSync(process.execPath, ['--input-type=module', '--eval', code], { cwd: root });
}
