import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { openStore } from '../../src/store/open-store.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { fileSystemIn, isNetwork } from '../../src/store/sqlite/file-system.ts';
import { InlineSqliteStore, SqliteStore } from '../../src/store/sqlite/store.ts';
import { Turnstile } from '../../src/store/sqlite/turnstile.ts';
import { createDatabase } from '../support/postgres.ts';
import { RUN_ALL } from '../support/share.ts';
import { codeOf } from './contract/code-of.ts';
import { fakeClock, Scene } from './contract/scene.ts';
import { openInlineSqlite } from './engines.ts';
import { runChild } from './processes/run-child.ts';

const folder = mkdtempSync(join(tmpdir(), 'moirai-files-'));
afterAll(() => rmSync(folder, { recursive: true }));
let made = 0;
const freshPath = () => join(folder, `${++made}.db`);
const locked = RUN_ALL ? tryLockedFiles() : null;

function open(path: string): Promise<SqliteStore> {
  return SqliteStore.open(path, DEFAULT_RESET_RULES);
}

/** A store with a session in it, closed. */
async function closedStore(path = freshPath()): Promise<string> {
  const clock = fakeClock();
  const store = new InlineSqliteStore(path, clock, DEFAULT_RESET_RULES);
  const scene = new Scene({ ...(await openInlineSqlite()), store });
  await scene.boot();
  await scene.start('1');
  await store.close();
  return path;
}

/** Neither the file nor anything beside it has changed after an attempt to open it. */
async function refusedUnchanged(path: string): Promise<string> {
  const before = readFileSync(path);
  const code = await codeOf(open(path));
  expect(readFileSync(path).equals(before)).toBe(true);
  for (const suffix of ['-wal', '-journal']) expect(existsSync(path + suffix)).toBe(false);
  return code;
}

describe('a file that is none of ours', () => {
  test('is refused and left as it is when it is a text', async () => {
    const path = freshPath();
    writeFileSync(path, 'Clotho spins, Lachesis measures, Atropos cuts.\n'.repeat(100));
    expect(await refusedUnchanged(path)).toBe('store_not_database');
    writeFileSync(path, 'x');
    expect(await refusedUnchanged(path)).toBe('store_not_database');
  });

  test("is refused and left as it is when it is another program's database", async () => {
    const path = freshPath();
    const db = new DatabaseSync(path);
    db.exec('CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES (1); PRAGMA user_version = 7');
    db.close();
    expect(await refusedUnchanged(path)).toBe('store_not_database');
  });

  test('is refused when it is a folder, or lies below a file', async () => {
    const path = freshPath();
    mkdirSync(path);
    expect(await codeOf(open(path))).toBe('store_not_database');
    const file = freshPath();
    writeFileSync(file, '');
    expect(await codeOf(open(join(file, 'state.db')))).toBe('store_io');
  });

  test('becomes a store when it is empty or not there, in a folder that is private to its user', async () => {
    const path = join(folder, 'new', 'home', 'state.db');
    const store = await open(path);
    expect(await store.read('stats', {})).toMatchObject({ total: 0 });
    await store.close();
    expect(statSync(join(folder, 'new', 'home')).mode & 0o777).toBe(0o700);
    const empty = freshPath();
    writeFileSync(empty, '');
    await (await open(empty)).close();
  });
});

describe('a store of a newer version', () => {
  test.each(['WAL', 'DELETE'])('is refused and left as it is (journal mode %s)', async (mode) => {
    const path = await closedStore();
    const db = new DatabaseSync(path);
    db.exec(`UPDATE meta SET value = '999' WHERE name = 'schema'; PRAGMA journal_mode = ${mode}`);
    db.close();
    expect(await refusedUnchanged(path)).toBe('store_newer');
    const error = await open(path).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(MoiraiError);
    expect(error).toMatchObject({ details: { found: 999 } });
  });

  test('is refused on PostgreSQL too, and left as it is', async () => {
    const database = await createDatabase();
    const open = () => PostgresStore.open(database.url, DEFAULT_RESET_RULES);
    await (await open()).close();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query("UPDATE moirai.meta SET value = '999'");
    await client.query('DROP TABLE moirai.lanes');
    expect(await codeOf(open())).toBe('store_newer');
    const { rows } = await client.query("SELECT to_regclass('moirai.lanes') AS lanes, value FROM moirai.meta");
    expect(rows).toEqual([{ lanes: null, value: '999' }]);
    await client.end();
    await database.drop();
  });
});

describe('a place that cannot be written', () => {
  const root = process.getuid?.() === 0;
  const nobody = root ? '65534' : '0';

  async function openedByNobody(path: string): Promise<string> {
    const child = runChild('as-nobody.ts', [nobody, path]);
    return child.line();
  }

  test('a file that may only be read', async () => {
    const home = mkdtempSync(join(folder, 'ro-'));
    const path = await closedStore(join(home, 'state.db'));
    chmodSync(path, 0o444);
    rmSync(`${path}-turnstile`, { force: true });
    chmodSync(home, 0o555);
    chmodSync(folder, 0o755);
    expect(await openedByNobody(path)).toBe('store_read_only');
    chmodSync(home, 0o755);
  });

  test('a file that may be written in a folder that may not', async () => {
    const home = mkdtempSync(join(folder, 'ro-'));
    const path = await closedStore(join(home, 'state.db'));
    rmSync(`${path}-turnstile`, { force: true });
    chmodSync(path, 0o666);
    chmodSync(home, 0o555);
    expect(await openedByNobody(path)).toBe('store_read_only');
    chmodSync(home, 0o755);
  });

  test('a folder in which no file may be made', async () => {
    const home = mkdtempSync(join(folder, 'ro-'));
    chmodSync(home, 0o555);
    expect(await openedByNobody(join(home, 'state.db'))).toBe('store_read_only');
    expect(await openedByNobody(join(home, 'deeper', 'state.db'))).toBe('store_read_only');
    chmodSync(home, 0o755);
  });

  test('a folder that may not even be entered', async () => {
    const home = mkdtempSync(join(folder, 'ro-'));
    const path = await closedStore(join(home, 'state.db'));
    chmodSync(home, 0o000);
    expect(await openedByNobody(path)).toBe('store_read_only');
    chmodSync(home, 0o755);
  });

  test('a folder that is shut while its store is open: what was written is said to be unknown, and then nothing is', async () => {
    const home = mkdtempSync(join(folder, 'shut-'));
    chmodSync(folder, 0o755);
    if (root) chownSync(home, Number(nobody), Number(nobody));
    const { said, open } = JSON.parse(await runChild('shut-folder.ts', [nobody, join(home, 'state.db')]).line());
    expect(said).toEqual(['no error', 'store_outcome_unknown', 'store_read_only', 'no error', 'no error']);
    expect(open).toBe(3);
  });

  test('a disk that is mounted to be read only', async ({ skip }) => {
    const missing = whyNoMounts();
    if (missing !== null) skip(missing);
    const home = mkdtempSync(join(folder, 'mount-'));
    const script = `mount -t tmpfs tmpfs ${home} && cp ${await closedStore()} ${home}/state.db && mount -o remount,ro ${home} && exec "$@"`;
    const child = runChild('as-nobody.ts', ['0', join(home, 'state.db')], [...unshare, 'sh', '-c', script, 'sh']);
    expect(await child.line()).toBe('store_read_only');
  });
});

const unshare = process.getuid?.() === 0 ? ['unshare', '-m'] : ['unshare', '-rm'];

/** Why this machine cannot give us a disk of our own; null when it can. */
function whyNoMounts(): string | null {
  const home = mkdtempSync(join(folder, 'try-'));
  const [command = '', ...args] = [...unshare, 'mount', '-t', 'tmpfs', 'tmpfs', home];
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return null;
  const reason = `no file system can be mounted here: ${error?.message ?? stderr.trim()}`;
  if (RUN_ALL) throw new Error(reason);
  return reason;
}

describe('a full disk', () => {
  test('refuses what does not fit, loses nothing that was acknowledged, and works on when there is room', async ({
    skip,
  }) => {
    const missing = whyNoMounts();
    if (missing !== null) skip(missing);
    const home = mkdtempSync(join(folder, 'full-'));
    const script = `mount -t tmpfs -o size=8m tmpfs ${home} && exec "$@"`;
    const child = runChild('full-disk.ts', [home], [...unshare, 'sh', '-c', script, 'sh']);
    const report = JSON.parse(await child.line()) as Record<string, unknown>;
    expect(report).toMatchObject({
      first: 'store_full',
      still: ['store_full'],
      after: ['no error'],
      reopened: 'no error',
      lostWhileFull: [],
      lostAfter: [],
      lostReopened: [],
      integrity: [],
      broken: [],
    });
    expect(report.written).toBeGreaterThan(20);
  });
});

describe('a database that somebody else holds', () => {
  test('for a while is waited for', async () => {
    const path = await closedStore();
    const holder = runChild('hold-lock.ts', [path, 'begin']);
    expect(await holder.line()).toBe('held');
    const store = await open(path);
    const started = performance.now();
    setTimeout(() => holder.send('let go'), 700);
    await store.write('forgetInstances', { lostBefore: 0 });
    expect(performance.now() - started).toBeGreaterThan(600);
    await store.close();
  });

  test('for too long is said to be locked', async () => {
    const path = await closedStore();
    const holder = runChild('hold-lock.ts', [path, 'begin']);
    expect(await holder.line()).toBe('held');
    const database = new DatabaseSync(path, { timeout: 0 });
    const turnstile = new Turnstile(path, 100);
    const begin = () => database.exec('BEGIN IMMEDIATE');
    expect(() => turnstile.enter(begin)).toThrow(expect.objectContaining({ code: 'store_locked' }));
    holder.send('let go');
    await holder.exited;
    turnstile.enter(begin);
    turnstile.close();
    database.close();
  });

  // The store is patient for half a minute.
  test.skipIf(!locked)(
    'for too long is said to be locked, to who writes and to who opens it',
    {
      timeout: 60_000,
    },
    async () => {
      if (locked === null) return;
      const { store, codes, letGo } = await locked;
      expect(await codes).toEqual(['store_locked', 'store_locked']);
      expect(await store.read('stats', {})).toMatchObject({ total: 1 });
      await letGo();
      await store.write('forgetInstances', { lostBefore: 0 });
      await store.close();
    },
  );
});

/** Begun with the file, because it takes as long as the store is patient. */
async function tryLockedFiles() {
  const [busy, owned] = [await closedStore(), await closedStore()];
  const holders = [runChild('hold-lock.ts', [busy, 'begin']), runChild('hold-lock.ts', [owned, 'own'])];
  for (const holder of holders) expect(await holder.line()).toBe('held');
  const store = await open(busy);
  const codes = Promise.all([store.write('forgetInstances', { lostBefore: 0 }), open(owned)].map(codeOf));
  const letGo = async (): Promise<void> => {
    for (const holder of holders) holder.send('let go');
    await Promise.all(holders.map(({ exited }) => exited));
    await (await open(owned)).close();
  };
  return { store, codes, letGo };
}

describe('a store URL', () => {
  test.each([
    ['', 'store_url'],
    ['state.db', 'store_url'],
    ['sqlite:', 'store_url'],
    ['mysql://root@localhost/x', 'store_url'],
    ['postgres://', 'store_unreachable'],
    ['postgres://nobody:secret@127.0.0.1:1/x', 'store_unreachable'],
  ])('%s gives %s', { timeout: 60_000 }, async (url, code) => {
    const error: unknown = await openStore(url, folder, DEFAULT_RESET_RULES).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(MoiraiError);
    expect((error as MoiraiError).code).toBe(code);
    expect((error as MoiraiError).message).not.toContain('secret');
  });
});

describe('a network file system', () => {
  const mounts = [
    'proc /proc proc rw,nosuid 0 0',
    '/dev/vda / ext4 rw,relatime 0 0',
    'server:/export /mnt/nfs nfs4 rw,vers=4.2 0 0',
    'server:/other /mnt/nfs\\040share\\011x nfs rw 0 0',
    'tmpfs /mnt/nfs/local tmpfs rw 0 0',
    'me@host:/ /home/me/remote fuse.sshfs rw 0 0',
    'C:\\134 /mnt/c 9p rw 0 0',
    'overlay / overlay rw 0 0',
    '',
  ].join('\n');

  test.each([
    ['/home/me', 'overlay', false],
    ['/mnt/nfs', 'nfs4', true],
    ['/mnt/nfs/deep/er', 'nfs4', true],
    ['/mnt/nfs2', 'overlay', false],
    ['/mnt/nfs share\tx/y', 'nfs', true],
    ['/mnt/nfs/local/z', 'tmpfs', false],
    ['/home/me/remote', 'fuse.sshfs', true],
    ['/mnt/c/Users', '9p', true],
  ])('%s is on %s', (place, type, network) => {
    expect(fileSystemIn(mounts, place)).toBe(type);
    expect(isNetwork(type)).toBe(network);
  });

  test.each(['ext4', 'xfs', 'btrfs', 'zfs', 'apfs', 'tmpfs', 'overlay', 'fuseblk', 'fuse.ntfs-3g'])(
    '%s is local',
    (type) => {
      expect(isNetwork(type)).toBe(false);
    },
  );

  test.each(['nfs', 'nfs4', 'cifs', 'smb3', 'smbfs', 'ceph', 'fuse.glusterfs', 'fuse.s3fs', 'fuse.rclone', 'lustre'])(
    '%s is remote',
    (type) => {
      expect(isNetwork(type)).toBe(true);
    },
  );

  test('is not where these tests run', async () => {
    await (await open(freshPath())).close();
  });
});
