import { constants } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';

/** How a handler is run: kept loaded by a runner of ours, or started for every event. */
export type HandlerKind = 'node' | 'python' | 'executable';

export interface HandlerFile {
  readonly kind: HandlerKind;
  readonly file: string;
  /** What is started with the event; for the other kinds this is up to their runner. */
  readonly command: readonly string[];
}

const KINDS: Readonly<Record<string, HandlerKind>> = {
  'handler.ts': 'node',
  'handler.mts': 'node',
  'handler.js': 'node',
  'handler.mjs': 'node',
  'handler.py': 'python',
  'handler.sh': 'executable',
  handler: 'executable',
};

/** The one handler in a hook's folder. Throws `hook_invalid` when there is none, or more than one, or it cannot run. */
export async function findHandler(folder: string, searchPath: string): Promise<HandlerFile> {
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
