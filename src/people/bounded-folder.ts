import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Removes the oldest files of a folder until those that are left take no more than this. The newest one stays. */
export async function makeRoom(folder: string, maxBytes: number): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  const files = await Promise.all(
    entries.filter((entry) => entry.isFile()).map(async ({ name }) => fileAt(join(folder, name))),
  );
  const oldest = files.flatMap((file) => file ?? []).sort((a, b) => a.changedMs - b.changedMs);
  let total = oldest.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { path, bytes } of oldest.slice(0, -1)) {
    if (total <= maxBytes) return;
    await rm(path, { force: true });
    total -= bytes;
  }
}

/** Null for one that somebody removed meanwhile. */
async function fileAt(path: string): Promise<{ path: string; bytes: number; changedMs: number } | null> {
  try {
    const { size, mtimeMs } = await stat(path);
    return { path, bytes: size, changedMs: mtimeMs };
  } catch {
    return null;
  }
}
