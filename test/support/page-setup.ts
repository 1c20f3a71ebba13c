import { execFileSync } from 'node:child_process';
import { existsSync, globSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Vitest's global setup: tests see the page as its sources are, built once for all of them. */
export default function setup(): void {
  const built = `${root}web/index.html`;
  const sources = globSync('src/space/page/**/*.*', { cwd: root }).map((path) => statSync(`${root}${path}`).mtimeMs);
  if (existsSync(built) && statSync(built).mtimeMs > Math.max(...sources)) return;
  execFileSync(process.execPath, ['scripts/build-page.ts'], { cwd: root, stdio: 'inherit' });
}
