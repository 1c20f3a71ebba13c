import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { assertNotNewer } from '../migrations/migrations.ts';

/*
 * A backup is a store of its own: an SQLite file with the schema of its time, whatever engine it was taken of. So it can
 * be looked at with any tool, restored into either engine, and a plain copy of a database that was closed is one too.
 */

/** What is known of a backup file before anything is done with it. */
export interface BackupFacts {
  readonly file: string;
  readonly schema: number;
  readonly sessions: number;
  /** Epoch milliseconds; null for a file that `moirai backup` did not write. */
  readonly takenAt: number | null;
}

/** Who wants to hear how far a backup or a restore is. */
export type Progress = (done: number, total: number) => void;

/** "MOIR": tells our files from other programs' databases. */
const APPLICATION_ID = 0x4d4f4952;
const MAGIC = 'SQLite format 3\0';

/** Reads a backup from its first page to its last. Throws `backup_invalid`, or `store_newer`; changes nothing. */
export function inspectBackup(file: string): BackupFacts {
  assertDatabase(file);
  if (existsSync(`${file}-wal`)) throw invalid(file, 'a part of it is in another file, as of a store in use');
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const number = (sql: string): number => Number(Object.values(db.prepare(sql).get() ?? {})[0] ?? 0);
    if (number('PRAGMA application_id') !== APPLICATION_ID) throw invalid(file, 'it is a database of another program');
    const schema = number("SELECT value FROM meta WHERE name = 'schema'");
    assertNotNewer(schema);
    const [finding] = db.prepare('PRAGMA integrity_check(1)').all().map(Object.values);
    if (finding?.[0] !== 'ok') throw invalid(file, String(finding?.[0]));
    const kept = db.prepare("SELECT value FROM meta WHERE name = 'backup'").get()?.value;
    const takenAt = typeof kept === 'string' ? (JSON.parse(kept) as { at: number }).at : null;
    return { file, schema, sessions: number('SELECT count(*) FROM sessions'), takenAt };
  } catch (thrown) {
    if (thrown instanceof MoiraiError) throw thrown;
    throw invalid(file, (thrown as Error).message, thrown);
  } finally {
    db.close();
  }
}

/** SQLite says of a file that ends early only that it is malformed, and opens an empty one as a new database. */
function assertDatabase(file: string): void {
  const head = Buffer.alloc(100);
  let opened: number;
  try {
    opened = openSync(file, constants.O_RDONLY);
  } catch (thrown) {
    throw invalid(file, (thrown as Error).message, thrown);
  }
  try {
    readSync(opened, head, 0, head.length, 0);
    if (head.toString('latin1', 0, MAGIC.length) !== MAGIC) throw invalid(file, 'it is not an SQLite database');
    const pageSize = head.readUInt16BE(16) === 1 ? 65_536 : head.readUInt16BE(16);
    const expected = pageSize * head.readUInt32BE(28);
    const { size } = statSync(file);
    if (size < expected) throw invalid(file, `it ends after ${size} of ${expected} bytes`);
  } catch (thrown) {
    throw MoiraiError.wrap(thrown, 'backup_invalid');
  } finally {
    closeSync(opened);
  }
}

function invalid(file: string, why: string, cause?: unknown): MoiraiError {
  return new MoiraiError('backup_invalid', `${file} is no usable backup: ${why}`, { cause });
}

/** Where a file is written before it is complete: an empty file beside it, for its owner only. */
export function makeDraft(file: string): string {
  const draft = `${file}.${process.pid}.part`;
  discard(draft);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(draft, '', { mode: 0o600, flag: 'wx' });
  return draft;
}

/** A copy of a backup, for its owner only. */
export function copyToDraft(from: string, file: string): string {
  const draft = makeDraft(file);
  copyFileSync(from, draft);
  // A copy has the mode of what it was made of.
  chmodSync(draft, 0o600);
  return draft;
}

/** Puts a complete file in its place, on the disk and in one step: a reader finds the old one or the new one. */
export function install(draft: string, file: string): void {
  syncPath(draft);
  renameSync(draft, file);
  syncPath(dirname(file));
}

function syncPath(path: string): void {
  const opened = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

export function discard(draft: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${draft}${suffix}`, { force: true });
}
