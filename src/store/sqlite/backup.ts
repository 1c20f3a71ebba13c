import { backup, DatabaseSync } from 'node:sqlite';
import type { Progress } from '../backup/backup-file.ts';

/** As many pages are copied before the process does anything else. */
const PAGES_AT_ONCE = 2000;
const WAIT_MS = 10_000;

/** Copies a store that others may be writing to, as it is now. */
export async function copySqlite(path: string, draft: string, progress: Progress): Promise<void> {
  const source = new DatabaseSync(path, { readOnly: true, timeout: WAIT_MS });
  try {
    // One read transaction for all pages: without it the copy begins anew whenever another process has written, and
    // under load it would never end.
    source.exec('BEGIN');
    source.prepare('SELECT count(*) FROM sqlite_master').get();
    await backup(source, draft, {
      rate: PAGES_AT_ONCE,
      progress: ({ totalPages, remainingPages }) => progress(totalPages - remainingPages, totalPages),
    });
  } finally {
    source.close();
  }
}
