import { readdir, stat } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { findHandler, type HandlerFile } from './handler-file.ts';
import { type HookManifest, readManifest } from './manifest.ts';

/** A folder that can be run as a hook. */
export interface UsableHook {
  readonly state: 'ready' | 'disabled';
  readonly name: string;
  readonly folder: string;
  readonly manifest: HookManifest;
  readonly handler: HandlerFile;
  /** Another one after its code or its HOOK.yaml changed. */
  readonly fingerprint: string;
}

/** A folder that cannot, and why. */
export interface BadHook {
  readonly state: 'bad';
  readonly name: string;
  readonly folder: string;
  readonly problem: string;
}

export type FoundHook = UsableHook | BadHook;

/** Every hook below a folder, in the order of the folders' names; what is wrong with one is said of that one. */
export async function discoverHooks(root: string, searchPath: string): Promise<FoundHook[]> {
  const found: FoundHook[] = [];
  for (const folder of await foldersIn(root)) {
    const hook = await examine(folder, searchPath);
    if (hook === null) continue;
    const twin = found.find(({ name, state }) => name === hook.name && state !== 'bad');
    const taken = hook.state !== 'bad' && twin !== undefined;
    found.push(taken ? bad(folder, `${basename(twin.folder)} has the name "${hook.name}" already`) : hook);
  }
  return found;
}

async function foldersIn(root: string): Promise<string[]> {
  const entries = await readdir(root).catch(() => []); // No folder, no hooks.
  return entries
    .filter((name) => !name.startsWith('.'))
    .toSorted()
    .map((name) => join(root, name));
}

/** Null for what is no folder. */
async function examine(folder: string, searchPath: string): Promise<FoundHook | null> {
  try {
    if (!(await stat(folder)).isDirectory()) return null;
    const fingerprint = await fingerprintOf(folder);
    const manifest = await readManifest(join(folder, 'HOOK.yaml'), basename(folder));
    const state = manifest.enabled ? 'ready' : 'disabled';
    return {
      state,
      name: manifest.name,
      folder,
      manifest,
      handler: await findHandler(folder, searchPath),
      fingerprint,
    };
  } catch (thrown) {
    return bad(folder, problemOf(thrown));
  }
}

function bad(folder: string, problem: string): BadHook {
  return { state: 'bad', name: basename(folder), folder, problem };
}

function problemOf(thrown: unknown): string {
  const code = (thrown as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'there is no HOOK.yaml';
  return thrown instanceof MoiraiError ? thrown.message : `it cannot be read: ${code ?? String(thrown)}`;
}

/** What a handler writes beside itself (its notes, its cache) is no change of the hook. */
const CODE = new Set(['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs', '.py', '.sh']);
const DEEPEST = 3;

async function fingerprintOf(folder: string, depth = 0): Promise<string> {
  const parts: string[] = [];
  for (const entry of (await readdir(folder, { withFileTypes: true })).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name } = entry;
    if (name.startsWith('.') || name === 'node_modules' || name === '__pycache__') continue;
    const path = join(folder, name);
    if (entry.isDirectory()) {
      if (depth < DEEPEST) parts.push(await fingerprintOf(path, depth + 1));
    } else if (CODE.has(extname(name)) || ['HOOK.yaml', 'handler', 'package.json'].includes(name)) {
      const { ino, size, mtimeMs } = await stat(path);
      parts.push([path, ino, size, mtimeMs].join(' '));
    }
  }
  return parts.join('\n');
}
