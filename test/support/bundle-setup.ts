import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type OutputChunk } from 'rolldown';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cache = `${root}node_modules/.cache/moirai-test`;

/** What processes and threads begin with; each stands beside the code that starts it, so all are put into one folder. */
const ENTRANCES = ['src/cli/main.ts', 'src/extensions/plugins/api.ts', 'src/**/*worker.ts'];

/**
 * Vitest's global setup: `moirai` as the processes of the tests run it, in few files. A gateway is made of seven hundred
 * modules, and to find and read each of them takes most of its start; tests start hundreds of gateways.
 */
export async function setup(): Promise<void> {
  const chunks = await bundle();
  const name = chunks.reduce((hash, { code }) => hash.update(code), createHash('sha256').update(root)).digest('hex');
  const place = `${cache}/${name.slice(0, 16)}`;
  // Another run may make the same one now: whoever is first puts it there whole.
  if (!existsSync(place)) put(chunks, place);
  removeOld(place);
  process.env.MOIRAI_TEST_LAUNCHER = `${place}/bin/moirai.js`; // the test processes inherit it
}

async function bundle(): Promise<OutputChunk[]> {
  const files = globSync(ENTRANCES, { cwd: root });
  const { output } = await build({
    input: Object.fromEntries(files.map((file) => [basename(file, '.ts'), `${root}${file}`])),
    cwd: root,
    platform: 'node',
    external: ['pg-native'],
    logLevel: 'silent',
    write: false,
    output: { format: 'esm' },
  });
  return output.filter((each) => each.type === 'chunk');
}

function put(chunks: readonly OutputChunk[], place: string): void {
  mkdirSync(cache, { recursive: true });
  const made = mkdtempSync(`${cache}/new-`);
  mkdirSync(`${made}/bin`);
  mkdirSync(`${made}/dist/cli`, { recursive: true });
  copyFileSync(`${root}bin/moirai.js`, `${made}/bin/moirai.js`);
  for (const name of ['package.json', 'web', 'node_modules']) symlinkSync(`${root}${name}`, `${made}/${name}`);
  for (const { fileName, code } of chunks) writeFileSync(`${made}/dist/cli/${fileName}`, code);
  try {
    renameSync(made, place);
  } catch (thrown) {
    if (!existsSync(place)) throw thrown;
  }
}

const DAY = 86_400_000;

function removeOld(current: string): void {
  for (const path of globSync(`${cache}/*`)) {
    if (path !== current && statSync(path).mtimeMs < Date.now() - DAY) rmSync(path, { recursive: true, force: true });
  }
}
