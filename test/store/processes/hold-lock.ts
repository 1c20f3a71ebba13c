// hold-lock.ts <file> <begin | own>: another program holds the database until it is told to let go. Prints `held`.
import { DatabaseSync } from 'node:sqlite';

const [, , path = '', how = ''] = process.argv;
const db = new DatabaseSync(path, { timeout: 5000 });
if (how === 'own')
  db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE x (y); DROP TABLE x; COMMIT');
else db.exec('BEGIN EXCLUSIVE');
console.log('held');
process.stdin.on('data', () => process.exit());
