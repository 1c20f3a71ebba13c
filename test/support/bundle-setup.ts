import { copyFileSync, globSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const root = fileURLToPath(new URL('../..', import.meta.url));
const target = `${root}node_modules/.cache/moirai-test`;

/** What processes and threads begin with; each stands beside the code that starts it, so all are put into one folder. */
const ENTRANCES = ['src/cli/main.ts', 'src/extensions/plugins/api.ts', 'src/**/*worker.ts'];

/**
 * Vitest's global setup: `moirai` as the processes of the tests run it, in few files. A gateway is made of seven hundred
 * modules, and to find and read each of them takes most of its start; tests start hundreds of gateways.
 */
export async function setup(): Promise<void> {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(`${target}/bin`, { recursive: true });
  copyFileSync(`${root}bin/moirai.js`, `${target}/bin/moirai.js`);
  for (const name of ['package.json', 'web', 'node_modules']) symlinkSync(`${root}${name}`, `${target}/${name}`);
  const files = globSync(ENTRANCES, { cwd: root });
  await build({
    input: Object.fromEntries(files.map((file) => [basename(file, '.ts'), `${root}${file}`])),
    cwd: root,
    platform: 'node',
    external: ['pg-native'],
    logLevel: 'silent',
    output: { dir: `${target}/dist/cli`, format: 'esm' },
  });
  process.env.MOIRAI_TEST_LAUNCHER = `${target}/bin/moirai.js`; // the test processes inherit it
}
