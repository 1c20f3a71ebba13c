import type { Dialect } from '../dialect.ts';
import { SEARCHED_CHARS } from '../limits.ts';

/** One writer at a time is SQLite's nature: nothing needs a lock, and rows are numbered in commit order. */
export const sqliteDialect: Dialect = {
  name: 'sqlite',
  integer: 'INTEGER',
  text: 'TEXT',
  vocabulary: () => [],
  word: (column, _, words) => `TEXT CHECK (${column} IN (${words.map((word) => `'${word}'`).join(', ')}))`,
  // Without AUTOINCREMENT, which would write one more page per commit: the newest rows of these tables are never
  // deleted, so numbers are not used twice.
  serialKey: 'INTEGER PRIMARY KEY',
  clustered: 'WITHOUT ROWID',
  oftenUpdated: '',
  seqColumn: 'no',
  listed: 'SELECT value FROM json_each(?)',
  forUpdate: '',
  skipLocked: '',
  lockKey: () => '0',
  tryLockKey: () => '1',
  instanceLock: null,
  sequence: [],
  endedIsFinal: [
    `CREATE TRIGGER sessions_ended_is_final BEFORE UPDATE OF state, ended_at, end_reason, end_cause ON sessions
     WHEN OLD.state = 'ended' AND (NEW.state <> 'ended' OR NEW.ended_at IS NOT OLD.ended_at
       OR NEW.end_reason IS NOT OLD.end_reason OR NEW.end_cause IS NOT OLD.end_cause)
     BEGIN SELECT RAISE(ABORT, 'an ended session is final'); END`,
  ],
  ownTables: [
    `CREATE VIRTUAL TABLE message_search USING fts5(text, content='', contentless_delete=1,
       tokenize='unicode61 remove_diacritics 2')`,
  ],
  // The index itself remembers how far it got: its newest entry.
  indexMessages: `INSERT INTO message_search(rowid, text) SELECT no, substr(text, 1, ${SEARCHED_CHARS}) FROM messages
    WHERE no > (SELECT coalesce(max(id), 0) FROM message_search_docsize) ORDER BY no LIMIT ? RETURNING rowid`,
  searchMessages: (words, limit) => ({
    sql: 'SELECT rowid AS message_no FROM message_search WHERE message_search MATCH ? ORDER BY rank LIMIT ?',
    params: [words.map((word) => `"${word.replaceAll('"', '""')}"`).join(' '), limit],
  }),
  settings: `SELECT 'version' AS name, sqlite_version() AS value
    UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode
    UNION ALL SELECT 'bytes', page_count * page_size FROM pragma_page_count, pragma_page_size`,
  integrityCheck: 'PRAGMA integrity_check(20)',
};
