import type { Dialect } from '../dialect.ts';
import { SEARCHED_CHARS } from '../limits.ts';
import { integer, selectValues } from '../table.ts';
import { type Query, query, type Tx } from '../transaction.ts';

const LISTED = 'SELECT value FROM json_each(?)';
/** Stands for a session that is gone, in the newest transcript row. */
const NOBODY = '';

const TOTAL_CHANGES = 'SELECT total_changes()';
/** As many pages of the index are rewritten in one transaction. */
const MERGED_PAGES = 500;

/** There is one writer at a time: nothing needs a lock. */
const NO_LOCK: readonly Query[] = [];
function* none(): Tx<void> {}

/** One writer at a time is SQLite's nature: nothing needs a lock, and rows are numbered in commit order. */
export const sqliteDialect: Dialect = {
  integer: 'INTEGER',
  text: 'TEXT',
  vocabulary: () => [],
  word: (column, _, words) => `TEXT CHECK (${column} IN (${words.map((word) => `'${word}'`).join(', ')}))`,
  // Without AUTOINCREMENT, which would write one more page per commit: the newest rows of these tables are never
  // deleted, so numbers are not used twice; see `forgetMessages`.
  serialKey: 'INTEGER PRIMARY KEY',
  clustered: 'WITHOUT ROWID',
  oftenUpdated: '',
  seqColumn: 'no',
  listed: LISTED,
  forUpdate: '',
  skipLocked: '',
  lockKey: () => NO_LOCK,
  lockKeyOf: () => NO_LOCK,
  // biome-ignore lint/correctness/useYield: there is nothing to ask.
  *tryLockKeysOf(sessionIds) {
    return sessionIds;
  },
  shareInstance: () => NO_LOCK,
  takeInstance: none,
  // biome-ignore lint/correctness/useYield: there is nothing to ask.
  *tryTakeInstance() {
    return true;
  },
  freshRows: null,
  lockRegistration: none,
  holdWriters: none,
  // biome-ignore lint/correctness/useYield: rows are numbered in commit order, so there is nothing to do.
  *sequenceEvents() {
    return false;
  },
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
  forgetMessages: (sessions) => {
    const gone = `session_id IN (${LISTED}) OR session_id = '${NOBODY}'`;
    const params = [sessions];
    return [
      // First, while the rows still say what is to be forgotten. Behind its newest entry the index goes on by itself:
      // what it forgets there has no row any longer, or an empty one.
      { sql: `DELETE FROM message_search WHERE rowid IN (SELECT no FROM messages WHERE ${gone})`, params },
      { sql: `DELETE FROM messages WHERE (${gone}) AND no < (SELECT max(no) FROM messages)`, params },
      // The newest row stays without what it said, until a newer one is there: its number would be used again.
      {
        sql: `UPDATE messages SET session_id = '${NOBODY}', position = no, role = '', text = '', turn_id = NULL, data = NULL
          WHERE session_id IN (${LISTED})`,
        params,
      },
    ];
  },
  *cleanIndex(first) {
    const before = yield* selectValues(integer, TOTAL_CHANGES);
    yield* query(
      "INSERT INTO message_search(message_search, rank) VALUES('merge', ?)",
      (first ? -1 : 1) * MERGED_PAGES,
    );
    const after = yield* selectValues(integer, TOTAL_CHANGES);
    // The statement counts as a change itself.
    return (after[0] ?? 0) - (before[0] ?? 0) > 1;
  },
  searchMessages: (words, limit, within) => ({
    sql: `SELECT rowid AS message_no FROM message_search WHERE message_search MATCH ?
          ${within === null ? '' : `AND rowid IN (SELECT no FROM messages WHERE session_id IN (${within.sql}))`}
          ORDER BY rank LIMIT ?`,
    params: [words.map((word) => `"${word.replaceAll('"', '""')}"`).join(' '), ...(within?.params ?? []), limit],
  }),
  factSearch: [
    `CREATE VIRTUAL TABLE fact_search USING fts5(words, content='', contentless_delete=1, tokenize='unicode61')`,
    `CREATE TRIGGER facts_added AFTER INSERT ON facts
     BEGIN INSERT INTO fact_search(rowid, words) VALUES (NEW.no, NEW.words); END`,
    `CREATE TRIGGER facts_removed AFTER DELETE ON facts
     BEGIN DELETE FROM fact_search WHERE rowid = OLD.no; END`,
  ],
  recallFacts: (columns, owner, words, limit) => ({
    sql: `SELECT ${columns} FROM fact_search JOIN facts ON facts.no = fact_search.rowid
          WHERE fact_search MATCH ? AND facts.owner = ? ORDER BY fact_search.rank, facts.no DESC LIMIT ?`,
    params: [words.map((word) => `"${word}"`).join(' OR '), owner, limit],
  }),
  settings: `SELECT 'version' AS name, sqlite_version() AS value
    UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode
    UNION ALL SELECT 'bytes', page_count * page_size FROM pragma_page_count, pragma_page_size`,
  integrityCheck: 'PRAGMA integrity_check(20)',
};
