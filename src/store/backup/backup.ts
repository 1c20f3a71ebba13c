import { existsSync, realpathSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { NO_HEARTBEATS } from '../sqlite/database-file.ts';
import { wrapSqlite } from '../sqlite/errors.ts';
import { discard, install, makeDraft, type Progress } from './backup-file.ts';

export interface BackupRequest {
  readonly engine: 'sqlite' | 'postgres';
  /** The path of an SQLite store; else the URL. */
  readonly place: string;
  /** Where the backup is to be; absolute. */
  readonly file: string;
  readonly replace: boolean;
  readonly now: number;
  readonly progress: Progress;
}

export interface BackupResult {
  readonly file: string;
  readonly bytes: number;
  readonly sessions: number;
}

/**
 * Copies a store as it is at one moment, while others go on writing to it. The file is for its owner only, and is either
 * complete or not there. Throws `backup_exists` for a file that is not to be replaced.
 */
export async function createBackup(request: BackupRequest): Promise<BackupResult> {
  const { file } = request;
  assertReplaceable(request);
  const draft = makeDraft(file);
  try {
    await copyTo(draft, request);
    const sessions = finish(draft, request);
    install(draft, file);
    return { file, bytes: statSync(file).size, sessions };
  } catch (thrown) {
    discard(draft);
    throw wrapSqlite(thrown, file);
  }
}

function assertReplaceable({ engine, place, file, replace }: BackupRequest): void {
  if (!existsSync(file)) return;
  if (engine === 'sqlite' && realpathSync(file) === realpathSync(place)) {
    throw new MoiraiError('bad_input', `${file} is the store itself`);
  }
  if (!replace) throw new MoiraiError('backup_exists', `${file} is there already`);
}

async function copyTo(draft: string, { engine, place, progress }: BackupRequest): Promise<void> {
  if (engine === 'sqlite') {
    const { copySqlite } = await import('../sqlite/backup.ts');
    return copySqlite(place, draft, progress);
  }
  const { copyPostgres } = await import('../postgres/backup.ts');
  return copyPostgres(place, draft, progress);
}

/** Makes one file of it, writes into it when it was taken, and reads it once. Returns how many sessions it holds. */
function finish(draft: string, { file, now }: BackupRequest): number {
  const db = new DatabaseSync(draft);
  try {
    db.exec('PRAGMA journal_mode = DELETE');
    // Copied over the store of a running gateway it is known for what it is.
    db.exec(`PRAGMA user_version = ${NO_HEARTBEATS}`);
    const facts = JSON.stringify({ at: now, file, bytes: null });
    db.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('backup', ?)").run(facts);
    const check = db.prepare('PRAGMA quick_check(1)').get()?.quick_check;
    if (check !== 'ok') throw new MoiraiError('store_corrupt', `the copy of the store is not sound: ${check}`);
    return Number(db.prepare('SELECT count(*) AS n FROM sessions').get()?.n);
  } finally {
    db.close();
  }
}
