import { constants } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { assertPattern } from '../../lifecycle/events.ts';
import type { ExtensionKind, Found, Usable } from '../host/extension-folder.ts';
import { type Manifest, ManifestReader } from '../host/manifest.ts';

/** What a HOOK.yaml says. */
export interface HookManifest extends Manifest {
  readonly events: readonly string[];
}

/** How a handler is run: kept loaded by a runner of ours, or started for every event. */
export interface HandlerFile {
  readonly kind: 'node' | 'python' | 'executable';
  readonly file: string;
  /** What is started with the event; for the other kinds this is up to their runner. */
  readonly command: readonly string[];
}

export interface HookFiles {
  readonly manifest: HookManifest;
  readonly handler: HandlerFile;
}

export type UsableHook = Usable<HookFiles>;
export type FoundHook = Found<HookFiles>;

/** `searchPath` is where an interpreter is looked for. */
export function hookKind(searchPath: string): ExtensionKind<HookFiles> {
  return {
    word: 'hook',
    manifest: 'HOOK.yaml',
    async read(folder) {
      const reader = await ManifestReader.open(folder, 'HOOK.yaml', 'hook_invalid');
      const values = reader.values();
      const events = typeof values.events === 'string' ? [values.events] : values.events;
      if (!Array.isArray(events) || events.length === 0) {
        throw reader.invalid('events is a list of event types, and not empty');
      }
      for (const pattern of events) assertPattern(String(pattern));
      const manifest = { ...reader.common(values), events: events.map(String) };
      return { manifest, handler: await findHandler(folder, searchPath) };
    },
  };
}

const KINDS: Readonly<Record<string, HandlerFile['kind']>> = {
  'handler.ts': 'node',
  'handler.mts': 'node',
  'handler.js': 'node',
  'handler.mjs': 'node',
  'handler.py': 'python',
  'handler.sh': 'executable',
  handler: 'executable',
};

/** The one handler in a hook's folder. Throws `hook_invalid` when there is none, or more than one, or it cannot run. */
async function findHandler(folder: string, searchPath: string): Promise<HandlerFile> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.name in KINDS && !entry.isDirectory()).map(({ name }) => name);
  const [name, ...others] = names.toSorted();
  if (name === undefined) throw invalid(`there is no handler: one of ${Object.keys(KINDS).join(', ')}`);
  if (others.length > 0) throw invalid(`there is more than one handler: ${[name, ...others].join(', ')}`);
  const kind = KINDS[name] ?? 'executable';
  const file = join(folder, name);
  if (kind === 'python') return { kind, file, command: [await findPython(searchPath)] };
  return { kind, file, command: kind === 'node' ? [] : await commandOf(file) };
}

/** A script without the right to be executed is read by sh, as its name says. */
async function commandOf(file: string): Promise<string[]> {
  if (await isExecutable(file)) return [file];
  if (file.endsWith('.sh')) return ['/bin/sh', file];
  throw invalid('the handler may not be executed; chmod +x helps');
}

async function findPython(searchPath: string): Promise<string> {
  for (const folder of searchPath.split(delimiter).filter(Boolean)) {
    const file = join(folder, 'python3');
    if (await isExecutable(file)) return file;
  }
  throw invalid('handler.py needs python3, and there is none in PATH');
}

async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function invalid(fault: string): MoiraiError {
  return new MoiraiError('hook_invalid', fault);
}
