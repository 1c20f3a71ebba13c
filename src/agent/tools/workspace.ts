import { mkdir, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Asker } from './tool.ts';

/** The folder in which the tools work for this asker. */
export type WorkspaceOf = (asker: Asker) => Promise<string>;

/** The real path of something that exists in the workspace. Links are followed first, then judged. */
export async function existingPath(workspace: string, path: string): Promise<string> {
  const root = await rootOf(workspace);
  const real = await realpath(resolve(root, path)).catch((error: unknown) => {
    throw new MoiraiError('tool_failed', `${path} does not exist in the workspace`, { cause: error });
  });
  return inside(root, real, path);
}

/** The real path of a file to be written, its folders made. A link out of the workspace is refused, also a broken one. */
export async function writablePath(workspace: string, path: string): Promise<string> {
  const root = await rootOf(workspace);
  const wanted = inside(root, resolve(root, path), path);
  const folder = await realFolder(root, dirname(wanted), path);
  return resolve(folder, basename(wanted));
}

/** A path as the model should see it. */
export function shownPath(workspace: string, path: string): string {
  return relative(workspace, path).split(sep).join('/') || '.';
}

export async function rootOf(workspace: string): Promise<string> {
  await mkdir(workspace, { recursive: true, mode: 0o700 });
  return realpath(workspace);
}

/** Walks up to what exists, judges that, and only then makes what is missing below it. */
async function realFolder(root: string, folder: string, path: string): Promise<string> {
  const real = await realpath(folder).catch(() => null);
  if (real !== null) return inside(root, real, path);
  const parent = await realFolder(root, dirname(folder), path);
  const made = resolve(parent, basename(folder));
  await mkdir(made).catch((error: unknown) => {
    throw new MoiraiError('tool_failed', `${shownPath(root, made)} cannot be made a folder`, { cause: error });
  });
  return made;
}

function inside(root: string, real: string, path: string): string {
  const way = relative(root, real);
  if (way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way)) {
    throw new MoiraiError('tool_failed', `${path} is outside the workspace`);
  }
  return real;
}
