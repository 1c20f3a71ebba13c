import { copyFileSync, existsSync, linkSync, renameSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { copyToDraft, discard, install } from '../backup/backup-file.ts';
import type { RestoreRequest } from '../backup/restore.ts';
import { settleRestored } from '../transactions/restoring.ts';
import { SqliteConnection } from './connection.ts';
import { sqliteCode, wrapSqlite } from './errors.ts';

/** Puts a backup in the place of a store's file. Returns where the file is that was there before. */
export function replaceSqlite({ place, file, suffix, now, progress }: RestoreRequest): string | null {
  const draft = copyToDraft(file, place);
  try {
    progress(1, 2);
    makeReady(draft, now);
    const kept = existsSync(place) ? keepAside(place, `${place}.before-restore-${suffix}`) : null;
    install(draft, place);
    progress(2, 2);
    return kept;
  } catch (thrown) {
    discard(draft);
    throw wrapSqlite(thrown, place);
  }
}

/** Brings the copy to this program's schema and settles it. Closed it is one file. */
function makeReady(draft: string, now: number): void {
  const connection = SqliteConnection.openWriter(draft);
  try {
    connection.exec('BEGIN IMMEDIATE');
    connection.run(settleRestored(now));
    connection.exec('COMMIT');
  } finally {
    connection.close();
  }
}

/** Gives the old file a second name, so that there is no moment without a store. */
function keepAside(place: string, aside: string): string {
  emptyLog(place);
  for (const log of ['-wal', '-shm'].filter((name) => existsSync(`${place}${name}`))) {
    // Only a damaged store still has one. It belongs to the old file; beside the new one it would be applied to it.
    renameSync(`${place}${log}`, `${aside}${log}`);
  }
  try {
    linkSync(place, aside);
  } catch {
    copyFileSync(place, aside); // A file system without second names.
  }
  return aside;
}

/** Moves what is in the log of the old file into it; closing removes the log, unless another process has it open. */
function emptyLog(place: string): void {
  let inUse = false;
  try {
    const db = new DatabaseSync(place, { timeout: 0 });
    try {
      db.exec('PRAGMA journal_mode = DELETE');
    } finally {
      db.close();
    }
  } catch (thrown) {
    const code = sqliteCode(thrown);
    inUse = code === 5 || code === 6;
  }
  if (inUse) throw new MoiraiError('store_in_use', `another process has ${place} open`);
}
