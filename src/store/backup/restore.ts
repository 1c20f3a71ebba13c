import { inspectBackup, type Progress } from './backup-file.ts';

export interface RestoreRequest {
  readonly engine: 'sqlite' | 'postgres';
  /** The path of an SQLite store; else the URL. */
  readonly place: string;
  readonly file: string;
  /** Names what is kept aside: a time, fit for a file's name. */
  readonly suffix: string;
  readonly now: number;
  readonly progress: Progress;
}

export interface RestoreResult {
  readonly sessions: number;
  /** When the backup was taken, epoch milliseconds; null for a file that `moirai backup` did not write. */
  readonly takenAt: number | null;
  /** Where the store is now that was there before: a file, or a schema of the database; null when there was none. */
  readonly kept: string | null;
}

/**
 * Puts a backup in the place of a store that no process uses. The backup is read whole before anything is touched, and
 * the store is replaced in one step: it is the old one or the new one.
 */
export async function restoreBackup(request: RestoreRequest): Promise<RestoreResult> {
  const { sessions, takenAt } = inspectBackup(request.file);
  const kept = await replaceStore(request);
  return { sessions, takenAt, kept };
}

async function replaceStore(request: RestoreRequest): Promise<string | null> {
  if (request.engine === 'sqlite') {
    const { replaceSqlite } = await import('../sqlite/restore.ts');
    return replaceSqlite(request);
  }
  const { replacePostgres } = await import('../postgres/restore.ts');
  return replacePostgres(request);
}
