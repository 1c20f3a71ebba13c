import { type BigIntStats, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

/** Whether the files at the path are those that are open: `log` when only the log was removed, which nobody replaced. */
export type FileVerdict = 'same' | 'log' | 'replaced';

/** More heartbeats of all processes than there can be between two looks. */
const MOST_AT_ONCE = 1000;

/**
 * Tells the database that is open from whatever is at its path: it may have been moved, removed, or written over by a
 * copy. Of the last only the file itself tells, in which a number stands that grows with every heartbeat: a checkpoint
 * takes it from the log into the file, so that an older copy has an older one.
 */
export class DatabaseFile {
  readonly #path: string;
  readonly #database: string;
  readonly #log: string;
  readonly #index: string;
  /** When the file was changed last, as far as it was looked into. */
  #changed: string;
  /** The number in the file, and the newest that is known. */
  #inFile: number;
  #newest: number;

  /** For a connection that has just been opened; `newest` is the number that it sees. */
  constructor(path: string, newest: number) {
    this.#path = path;
    this.#newest = newest;
    this.#database = identityOf(look(path));
    this.#log = identityOf(look(`${path}-wal`));
    this.#index = identityOf(look(`${path}-shm`));
    this.#changed = changeOf(look(path));
    this.#inFile = numberIn(path) ?? 0;
  }

  /** A heartbeat is about to write the next number. */
  next(seen: number, now: number): number {
    // Where there is none yet it begins anywhere: a database of somebody else has another one.
    const first = Math.trunc(now * 2_654_435.761) % 2 ** 30;
    this.#newest = seen === 0 ? first + 1 : seen + 1;
    return this.#newest;
  }

  check(): FileVerdict {
    const database = look(this.#path);
    if (identityOf(database) !== this.#database || !this.#isOurs(changeOf(database))) return 'replaced';
    if (identityOf(look(`${this.#path}-shm`)) !== this.#index) return 'replaced';
    const log = look(`${this.#path}-wal`);
    if (log === undefined) return 'log';
    return identityOf(log) === this.#log ? 'same' : 'replaced';
  }

  #isOurs(changed: string): boolean {
    if (changed === this.#changed) return true;
    const number = numberIn(this.#path);
    if (number === null || number < this.#inFile) return false;
    // Zero before the first heartbeat of all, which may be any number.
    if (this.#newest > 0 && number > this.#newest + MOST_AT_ONCE) return false;
    this.#changed = changed;
    this.#inFile = number;
    this.#newest = Math.max(this.#newest, number);
    return true;
  }
}

function look(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function identityOf(stats: BigIntStats | undefined): string {
  return stats === undefined ? '' : `${stats.dev}:${stats.ino}`;
}

function changeOf(stats: BigIntStats | undefined): string {
  return stats === undefined ? '' : `${stats.ctimeNs}:${stats.size}`;
}

/**
 * The number in the file itself, whatever the log says; null when it is none of a database. By SQLite: a file that this
 * process opens and closes by itself loses all locks that the process holds on it.
 */
function numberIn(path: string): number | null {
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  let db: DatabaseSync | null = null;
  try {
    db = new DatabaseSync(url, { readOnly: true });
    return Number(db.prepare('PRAGMA user_version').get()?.user_version);
  } catch {
    return null; // Half of a copy, or something else: not ours, which is the answer.
  } finally {
    db?.close();
  }
}
