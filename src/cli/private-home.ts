import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { MoiraiError } from '../errors/moirai-error.ts';

/** Something in a home that others of this machine could read or write, and its mode. */
export interface OpenEntry {
  readonly path: string;
  readonly mode: string;
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
export function closeHome(home: string, uid: number | null): OpenEntry[] {
  assertOwned([home, ...TRUSTED.map((name) => join(home, name))], uid);
  const open = openEntries(home);
  for (const { path, mode } of open) {
    try {
      chmodSync(path, Number.parseInt(mode, 8) & ~OTHERS);
    } catch (cause) {
      const { message } = MoiraiError.wrap(cause);
      throw new MoiraiError('home_unusable', `${path} is open to other users and stays so: ${message}`, { cause });
    }
  }
  return open;
}

/** Root may use what belongs to anybody: a container that runs as root often has its home from outside. */
function assertOwned(paths: readonly string[], uid: number | null): void {
  if (uid === null || uid === 0) return;
  for (const path of paths) {
    const owner: number = lstatSync(path, { throwIfNoEntry: false })?.uid ?? uid;
    if (owner === uid) continue;
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
