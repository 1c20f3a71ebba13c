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
 * takes it from the log into the file, so that an older copy has an older one. A copy that was made anew (`VACUUM INTO`)
 * has another schema version; a backup of ours has no such number at all.
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
  /** The schema version in the file. */
  #schema: number;
  readonly #seen: () => FileMarks;

  /** For a connection that has just been opened; `seen` is what it sees, of the log too. */
  constructor(path: string, seen: () => FileMarks) {
    this.#path = path;
    this.#seen = seen;
    const now = seen();
    this.#newest = now.heartbeats;
    this.#database = identityOf(look(path));
    this.#log = identityOf(look(`${path}-wal`));
    this.#index = identityOf(look(`${path}-shm`));
    this.#changed = changeOf(look(path));
    const marks = marksIn(path) ?? now;
    this.#inFile = marks.heartbeats;
    this.#schema = marks.schema;
  }

  /** A heartbeat is about to write the next number. */
  next(seen: number, now: number): number {
    // Where there is none yet it begins anywhere: a database of somebody else has another one.
    const first = Math.trunc(now * 2_654_435.761) % 2 ** 30;
    this.#newest = seen <= 0 ? first + 1 : seen + 1;
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
    const marks = marksIn(this.#path);
    if (marks === null || marks.heartbeats < this.#inFile || !this.#isOurSchema(marks.schema)) return false;
    // None before the first heartbeat of all, which may be any number.
    if (this.#newest > 0 && marks.heartbeats > this.#newest + MOST_AT_ONCE) return false;
    this.#changed = changed;
    this.#inFile = marks.heartbeats;
    this.#schema = marks.schema;
    this.#newest = Math.max(this.#newest, marks.heartbeats);
    return true;
  }

  /** A program that changes tables raises the version through the log, where the open connection sees it. */
  #isOurSchema(schema: number): boolean {
    return schema === this.#schema || (schema > this.#schema && schema <= this.#seen().schema);
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

/** What tells a database file from copies of it. */
export interface FileMarks {
  readonly heartbeats: number;
  readonly schema: number;
}

/** The heartbeats of a file that is a copy and nothing else. */
export const NO_HEARTBEATS = -1;

/**
 * What stands in the file itself, whatever the log says; null when it is no database. By SQLite: a file that this
 * process opens and closes by itself loses all locks that the process holds on it.
 */
function marksIn(path: string): FileMarks | null {
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  let db: DatabaseSync | null = null;
  try {
    db = new DatabaseSync(url, { readOnly: true, defensive: false });
    // While another process takes its log into the file, the first page says more pages than there are: without this,
    // SQLite refuses such a file.
    db.exec('PRAGMA writable_schema = ON');
    return marksOf(db);
  } catch {
    return null; // Half of a copy, or something else: not ours, which is the answer.
  } finally {
    db?.close();
  }
}

/** The same as a connection sees it. Both stand in the first page: nothing else is read. */
export function marksOf(db: DatabaseSync): FileMarks {
  return {
    heartbeats: Number(db.prepare('PRAGMA user_version').get()?.user_version),
    schema: Number(db.prepare('PRAGMA schema_version').get()?.schema_version),
  };
}
