import { closeSync, openSync } from 'node:fs';

/**
 * Makes a file that only its owner can read, unless it is there. SQLite would make it for everybody; what it makes beside a
 * database has the mode of that database.
 */
export function makePrivate(path: string): void {
  closeSync(openSync(path, 'a', 0o600));
}
