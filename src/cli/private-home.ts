import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { MoiraiError } from '../errors/moirai-error.ts';

/** Something in a home that others of this machine could read or write, and its mode. */
export interface OpenEntry {
  readonly path: string;
  readonly mode: string;
}

/** One that was closed; or why it could not be: a file may be on a file system that is read-only, or has no modes. */
export interface ClosedEntry extends OpenEntry {
  readonly problem: string | null;
}

const OTHERS = 0o077;
/** Folders whose files are looked at too. The workspace is the agent's, and hooks and plugins are their authors'. */
const FOLDERS = ['logs', 'memory'];
/** What the gateway trusts: who writes these decides what it does. */
const TRUSTED = ['config.yaml', '.env', 'state.db', 'hooks', 'plugins'];

/** Everything in a home that is open to other users of the machine. */
export function openEntries(home: string): OpenEntry[] {
  return entriesOf(home).flatMap((path) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    // A link has no mode of its own, and what it leads to need not be ours.
    if (stat === undefined || stat.isSymbolicLink() || (stat.mode & OTHERS) === 0) return [];
    return [{ path, mode: (stat.mode & 0o777).toString(8).padStart(4, '0') }];
  });
}

/**
 * Takes from others of this machine what they could read or write of a home, and returns what that was. Throws
 * `home_unusable` where the home, or what is trusted in it, belongs to another user: `uid` is ours, null where users have
 * no numbers.
 */
export function closeHome(home: string, uid: number | null): ClosedEntry[] {
  assertOwned([home, ...TRUSTED.map((name) => join(home, name))], uid);
  return openEntries(home).map((entry) => {
    try {
      chmodSync(entry.path, Number.parseInt(entry.mode, 8) & ~OTHERS);
      return { ...entry, problem: null };
    } catch (thrown) {
      return { ...entry, problem: MoiraiError.wrap(thrown).message };
    }
  });
}

/**
 * Root may use what belongs to anybody: a container that runs as root often has its home from outside. What belongs to root is
 * trusted by anybody, such as a configuration that is mounted into a container.
 */
function assertOwned(paths: readonly string[], uid: number | null): void {
  if (uid === null || uid === 0) return;
  for (const path of paths) {
    const owner: number = lstatSync(path, { throwIfNoEntry: false })?.uid ?? uid;
    if (owner === uid || owner === 0) continue;
    throw new MoiraiError('home_unusable', `${path} belongs to another user (${owner}), who could change what it says`);
  }
}

function entriesOf(home: string): string[] {
  const inside = (folder: string): string[] => namesIn(folder).map((name) => join(folder, name));
  return [home, ...inside(home), ...FOLDERS.flatMap((folder) => inside(join(home, folder)))];
}

function namesIn(folder: string): string[] {
  const stat = lstatSync(folder, { throwIfNoEntry: false });
  return stat?.isDirectory() ? readdirSync(folder) : [];
}
