import { readdir, stat } from 'node:fs/promises';
import { basename, extname, join, relative } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { type PluginManifest, readManifest } from './manifest.ts';

/** A folder that can be loaded as a plugin. */
export interface UsablePlugin {
  readonly state: 'ready' | 'disabled';
  readonly name: string;
  readonly folder: string;
  readonly manifest: PluginManifest;
  /** The file of its module. */
  readonly main: string;
  /** Another one after its code or its plugin.yaml changed. */
  readonly fingerprint: string;
}

/** A folder that cannot, and why. */
export interface BadPlugin {
  readonly state: 'bad';
  readonly name: string;
  readonly folder: string;
  readonly problem: string;
}

export type FoundPlugin = UsablePlugin | BadPlugin;

/** The folder that plugins are in. */
export function pluginsFolder(home: string): string {
  return join(home, 'plugins');
}

/** Every plugin below a folder, in the order of their names; what is wrong with one is said of that one. */
export async function discoverPlugins(root: string): Promise<FoundPlugin[]> {
  const found: FoundPlugin[] = [];
  for (const folder of await foldersIn(root)) {
    const plugin = await examine(folder);
    if (plugin === null) continue;
    const twin = found.find(({ name, state }) => name === plugin.name && state !== 'bad');
    const taken = plugin.state !== 'bad' && twin !== undefined;
    found.push(taken ? bad(folder, `${basename(twin.folder)} has the name "${plugin.name}" already`) : plugin);
  }
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

async function foldersIn(root: string): Promise<string[]> {
  const entries = await readdir(root).catch(() => []); // No folder, no plugins.
  return entries
    .filter((name) => !name.startsWith('.'))
    .toSorted()
    .map((name) => join(root, name));
}

/** Null for what is no folder. */
async function examine(folder: string): Promise<FoundPlugin | null> {
  try {
    if (!(await stat(folder)).isDirectory()) return null;
    // Before anything is read: what changes meanwhile is seen as a change the next time.
    const fingerprint = await fingerprintOf(folder);
    const manifest = await readManifest(join(folder, 'plugin.yaml'), basename(folder));
    const state = manifest.enabled ? 'ready' : 'disabled';
    return { state, name: manifest.name, folder, manifest, main: await findMain(folder, manifest), fingerprint };
  } catch (thrown) {
    return bad(folder, problemOf(thrown));
  }
}

const EXTENSIONS = ['ts', 'mts', 'js', 'mjs'];
const MAINS = ['index', 'plugin'].flatMap((name) => EXTENSIONS.map((extension) => `${name}.${extension}`));

async function findMain(folder: string, { main }: PluginManifest): Promise<string> {
  if (main !== null) {
    const file = join(folder, main);
    if (relative(folder, file).startsWith('..')) throw invalid(`main is "${main}", which is outside the folder`);
    if (await isFile(file)) return file;
    throw invalid(`main is "${main}", and there is no such file`);
  }
  for (const name of MAINS) if (await isFile(join(folder, name))) return join(folder, name);
  throw invalid(`there is no module: one of ${MAINS.join(', ')}, or what \`main\` of plugin.yaml names`);
}

function isFile(file: string): Promise<boolean> {
  return stat(file).then(
    (found) => found.isFile(),
    () => false,
  );
}

function bad(folder: string, problem: string): BadPlugin {
  return { state: 'bad', name: basename(folder), folder, problem: `${basename(folder)}: ${problem}` };
}

function problemOf(thrown: unknown): string {
  const code = (thrown as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'there is no plugin.yaml';
  return thrown instanceof MoiraiError ? thrown.message : `it cannot be read: ${code ?? String(thrown)}`;
}

function invalid(fault: string): MoiraiError {
  return new MoiraiError('plugin_invalid', fault);
}

/** What a plugin writes beside itself (its notes, its cache) is no change of it. */
const CODE = new Set(['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs']);
const DEEPEST = 3;

async function fingerprintOf(folder: string, depth = 0): Promise<string> {
  const parts: string[] = [];
  for (const entry of (await readdir(folder, { withFileTypes: true })).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name } = entry;
    if (name.startsWith('.') || name === 'node_modules') continue;
    const path = join(folder, name);
    if (entry.isDirectory()) {
      if (depth < DEEPEST) parts.push(await fingerprintOf(path, depth + 1));
    } else if (CODE.has(extname(name)) || name === 'plugin.yaml' || name === 'package.json') {
      const { ino, size, mtimeMs } = await stat(path);
      parts.push([path, ino, size, mtimeMs].join(' '));
    }
  }
  return parts.join('\n');
}
