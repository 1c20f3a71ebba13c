import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makePrivate } from './private-file.ts';
import { isBusy } from './sqlite/errors.ts';

/**
 * Makes sure that one process at a time does something in a home. The lock is SQLite's on an empty file, which the system
 * gives back when the process is gone, however it went; a file beside it says who holds it.
 */
export class HomeLock<Holder> {
  readonly #database: DatabaseSync;
  readonly #notePath: string;

  private constructor(database: DatabaseSync, notePath: string) {
    this.#database = database;
    this.#notePath = notePath;
  }

  /** Takes the lock, or tells who holds it: null when that is not known. */
  static take<Holder>(home: string, name: string, holder: Holder): HomeLock<Holder> | { heldBy: Holder | null } {
    const database = openLock(home, name);
    try {
      database.exec('PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    } catch (thrown) {
      database.close();
      if (isBusy(thrown)) return { heldBy: readHolder<Holder>(home, name) };
      throw thrown;
    }
    const lock = new HomeLock<Holder>(database, notePath(home, name));
    lock.note(holder);
    return lock;
  }

  /** Who holds the lock now; null when nobody does. Only looks. */
  static holder<Holder>(home: string, name: string): Holder | null {
    const database = openLock(home, name);
    try {
      database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE; ROLLBACK');
      return null;
    } catch (thrown) {
      if (isBusy(thrown)) return readHolder<Holder>(home, name);
      throw thrown;
    } finally {
      database.close();
    }
  }

  /** Says more about who holds it. */
  note(holder: Holder): void {
    // In one step: whoever reads it meanwhile must not find half of it.
    const draft = `${this.#notePath}.new`;
    writeFileSync(draft, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
    renameSync(draft, this.#notePath);
  }

  release(): void {
    rmSync(this.#notePath, { force: true });
    this.#database.close();
  }
}

function notePath(home: string, name: string): string {
  return join(home, `${name}.json`);
}

function readHolder<Holder>(home: string, name: string): Holder | null {
  try {
    return JSON.parse(readFileSync(notePath(home, name), 'utf8')) as Holder;
  } catch {
    return null; // It has just been taken, or just been released.
  }
}

function openLock(home: string, name: string): DatabaseSync {
  const path = join(home, `${name}.lock`);
  makePrivate(path);
  return new DatabaseSync(path);
}
