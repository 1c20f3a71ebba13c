import { readFileSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';

const REMOTE =
  /^(nfs\d?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|beegfs|davfs|fuse\.(sshfs|s3fs|rclone|gcsfuse|glusterfs)\w*)$/;

/** File locks and memory maps of network file systems are not to be trusted with a WAL: refuse them. */
export function assertLocalFileSystem(path: string): void {
  const type = fileSystemOf(path);
  if (type === null || !isNetwork(type)) return;
  throw new MoiraiError(
    'store_unsafe',
    `${path} is on a network file system (${type}); keep the SQLite file on a local disk, or use PostgreSQL`,
  );
}

export function isNetwork(type: string): boolean {
  return REMOTE.test(type);
}

/** The type of the mount a path lies on; null where the system has no list of mounts. */
function fileSystemOf(path: string): string | null {
  try {
    return fileSystemIn(readFileSync('/proc/self/mounts', 'utf8'), realpathSync(dirname(path)));
  } catch {
    return null; // Not Linux, or no such folder yet: opening the file will say what is wrong.
  }
}

/** The same, given the list of mounts: the longest one that covers the place, and of those the one mounted last. */
export function fileSystemIn(mounts: string, place: string): string | null {
  let best: { point: string; type: string } | null = null;
  for (const line of mounts.split('\n')) {
    const [, rawPoint, type] = line.split(' ');
    if (rawPoint === undefined || type === undefined) continue;
    const point = rawPoint.replace(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const covers = place === point || place.startsWith(point.endsWith('/') ? point : `${point}/`);
    if (covers && (best === null || point.length >= best.point.length)) best = { point, type };
  }
  return best?.type ?? null;
}
