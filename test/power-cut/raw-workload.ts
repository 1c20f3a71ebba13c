import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { between, seededRandom } from './random.ts';
import type { Workload } from './workload.ts';

const FILE = 'raw.db';
const SESSIONS = 200;
/** Small, so that the run is full of checkpoints: they are where the database file itself is at risk. */
const AUTOCHECKPOINT_PAGES = 200;

const SCHEMA = `
  CREATE TABLE sessions (id INTEGER PRIMARY KEY, state TEXT NOT NULL, seq INTEGER NOT NULL, note TEXT NOT NULL);
  CREATE TABLE log (n INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, payload TEXT NOT NULL,
                    UNIQUE (session, seq));
`;

/** Bare node:sqlite, without Moirai: shows what the engine promises, and that the replay tells FULL from NORMAL. */
export function rawWorkload(): Workload {
  let commit: ((n: number) => void) | undefined;
  let close: (() => void) | undefined;
  let commits = 0;

  return {
    async open(directory, options) {
      const db = new DatabaseSync(join(directory, FILE));
      db.exec(`PRAGMA journal_mode = WAL`);
      db.exec(`PRAGMA synchronous = ${options.synchronous}`);
      db.exec(`PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
      db.exec(`BEGIN; ${SCHEMA} COMMIT`);
      commit = prepareCommit(db, options.seed);
      close = () => db.close();
      commits = options.commits;
    },

    async run(ack) {
      for (let n = 1; n <= commits; n++) {
        commit?.(n);
        ack(String(n));
      }
      close?.();
    },

    async verify(directory, acked) {
      const path = join(directory, FILE);
      if (!existsSync(path)) return acked.map(lostCommit);
      try {
        using db = new DatabaseSync(path);
        return [...checkIntegrity(db), ...checkCommits(db, acked)];
      } catch (error) {
        // SQLite refusing to read the file is a finding about that image, not a failure of the harness.
        return [`cannot be read: ${error instanceof Error ? error.message : String(error)}`];
      }
    },
  };
}

/** SQLite's own findings on a database, none when it is sound. */
export function checkIntegrity(db: DatabaseSync): string[] {
  const findings = db.prepare('PRAGMA integrity_check').all();
  return findings.map((row) => String(row.integrity_check)).filter((finding) => finding !== 'ok');
}

/** One transaction like a transition: a session's row moves on and the log gets a row. */
function prepareCommit(db: DatabaseSync, seed: number): (n: number) => void {
  const random = seededRandom(seed);
  const step = db.prepare(`
    INSERT INTO sessions (id, state, seq, note) VALUES (?, 'active', 1, ?)
    ON CONFLICT (id) DO UPDATE SET seq = seq + 1, note = excluded.note RETURNING seq`);
  const append = db.prepare('INSERT INTO log (n, session, seq, payload) VALUES (?, ?, ?, ?)');
  return (n) => {
    const session = between(random, 1, SESSIONS);
    const text = `commit ${n} `.repeat(between(random, 1, 40));
    db.exec('BEGIN IMMEDIATE');
    const row = step.get(session, text);
    append.run(n, session, Number(row?.seq), text);
    db.exec('COMMIT');
  };
}

function checkCommits(db: DatabaseSync, acked: readonly string[]): string[] {
  const created = db.prepare("SELECT count(*) AS tables FROM sqlite_schema WHERE name IN ('sessions', 'log')").get();
  if (created?.tables === 0) return acked.map(lostCommit);
  const present = new Set(
    db
      .prepare('SELECT n FROM log')
      .all()
      .map((row) => String(row.n)),
  );
  const violations = acked.filter((token) => !present.has(token)).map(lostCommit);
  const last = Number(db.prepare('SELECT coalesce(max(n), 0) AS last FROM log').get()?.last);
  if (last !== present.size) violations.push(`the log has ${present.size} rows but ends with ${last}`);
  // One commit may have been in flight. A second would mean that the image holds what was written after the crash.
  if (last > acked.length + 1) violations.push(`commit ${last} is there but only ${acked.length} were acknowledged`);
  const torn = db.prepare(`
    SELECT s.id FROM sessions s LEFT JOIN log l ON l.session = s.id
    GROUP BY s.id HAVING count(l.n) <> s.seq OR max(l.seq) <> s.seq`);
  for (const row of torn.all()) violations.push(`session ${row.id} and its log rows are not of one transaction`);
  return violations;
}

function lostCommit(token: string): string {
  return `commit ${token} was acknowledged and is not there`;
}
