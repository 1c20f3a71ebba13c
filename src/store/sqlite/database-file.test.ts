import { mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DatabaseFile, marksOf } from './database-file.ts';

let folder: string;
let path: string;
let db: DatabaseSync;
let file: DatabaseFile;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'moirai-database-file-'));
  path = join(folder, 'state.db');
  db = new DatabaseSync(path);
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT); PRAGMA user_version = 7');
  for (let i = 0; i < 500; i++) db.prepare('INSERT INTO notes VALUES (?)').run('x'.repeat(100));
  checkpoint();
  db.exec("INSERT INTO notes VALUES ('in the log')");
  file = new DatabaseFile(path, () => marksOf(db));
});

afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

function checkpoint(): void {
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}

test('a file that a checkpoint has not yet made as long as its first page says is the same', () => {
  truncateSync(path, statSync(path).size - 8192);
  expect(file.check()).toBe('same');
});

test('a file whose tables another program has changed through the log is the same', () => {
  const other = new DatabaseSync(path);
  other.exec('ALTER TABLE notes ADD COLUMN colour TEXT; CREATE INDEX notes_text ON notes (text)');
  checkpoint();
  expect(file.check()).toBe('same');
  other.exec('VACUUM');
  other.close();
  checkpoint();
  expect(file.check()).toBe('same');
});
