import type { Dialect } from '../dialect.ts';
import { SEARCHED_CHARS } from '../limits.ts';
import { query, queryOne } from '../transaction.ts';

const LISTED = 'SELECT value FROM json_array_elements_text(CAST(? AS json)) AS value';

const NUMBER_EVENTS = `UPDATE events SET seq = fresh.seq FROM (
    SELECT no, nextval('event_seq') AS seq FROM (SELECT no FROM events WHERE seq IS NULL ORDER BY no LIMIT ?) unnumbered
  ) fresh WHERE events.no = fresh.no`;

/** Any number of writers: conversations are locked by name, and the log is numbered after the commit. */
export const postgresDialect: Dialect = {
  name: 'postgres',
  integer: 'BIGINT',
  text: 'TEXT COLLATE "C"',
  // Rules of a table are read and parsed anew by every statement that writes to it; those of a domain are not.
  vocabulary: (name, words) => [
    `CREATE DOMAIN ${name} AS TEXT COLLATE "C" CHECK (VALUE IN (${words.map((word) => `'${word}'`).join(', ')}))`,
  ],
  word: (_, vocabulary) => vocabulary,
  serialKey: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  clustered: '',
  oftenUpdated: 'WITH (fillfactor = 75)',
  seqColumn: 'seq',
  listed: LISTED,
  forUpdate: 'FOR UPDATE',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  lockKey: (expression) => `pg_advisory_xact_lock(hashtextextended(${expression}, 0))`,
  tryLockKey: (expression) => `pg_try_advisory_xact_lock(hashtextextended(${expression}, 0))`,
  instanceLock: {
    share: 'SELECT pg_advisory_xact_lock_shared(hashtextextended(?, 3))',
    take: 'SELECT pg_advisory_xact_lock(hashtextextended(?, 3))',
    tryTake: 'SELECT CASE WHEN pg_try_advisory_xact_lock(hashtextextended(?, 3)) THEN 1 ELSE 0 END AS held',
  },
  *lockRegistration() {
    yield* query("SELECT pg_advisory_xact_lock(hashtextextended('moirai:subscribe', 1))");
  },
  *holdWriters() {
    yield* query('LOCK TABLE subscribers IN ACCESS EXCLUSIVE MODE');
  },
  // Commit order is not insertion order here: a reader of `no > last` would miss events. Under one lock, whatever is
  // committed and unnumbered gets the next numbers; `no` keeps the order within each conversation.
  *sequenceEvents(limit) {
    if ((yield* queryOne('SELECT no FROM events WHERE seq IS NULL LIMIT 1')) === undefined) return false;
    yield* query("SELECT pg_advisory_xact_lock(hashtextextended('moirai:sequence', 1))");
    const [[numbered] = []] = yield [{ sql: NUMBER_EVENTS, params: [limit], returns: 'count' }];
    return numbered?.changed === limit;
  },
  endedIsFinal: [
    `CREATE FUNCTION sessions_ended_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN
       RAISE EXCEPTION 'an ended session is final' USING ERRCODE = 'integrity_constraint_violation';
     END $$`,
    `CREATE TRIGGER sessions_ended_is_final BEFORE UPDATE OF state, ended_at, end_reason, end_cause ON sessions
     FOR EACH ROW
     WHEN (OLD.state = 'ended' AND (NEW.state <> 'ended' OR NEW.ended_at IS DISTINCT FROM OLD.ended_at
       OR NEW.end_reason IS DISTINCT FROM OLD.end_reason OR NEW.end_cause IS DISTINCT FROM OLD.end_cause))
     EXECUTE FUNCTION sessions_ended_is_final()`,
  ],
  ownTables: [
    'CREATE SEQUENCE event_seq',
    'ALTER TABLE events ADD COLUMN seq BIGINT',
    'CREATE UNIQUE INDEX events_by_seq ON events (seq) WHERE seq IS NOT NULL',
    'CREATE INDEX events_unnumbered ON events (no) WHERE seq IS NULL',
    `CREATE INDEX messages_search ON messages USING gin (to_tsvector('simple', left(text, ${SEARCHED_CHARS})))`,
  ],
  indexMessages: null,
  // The numbers come from a sequence, and the index follows its table.
  forgetMessages: (sessions) => [{ sql: `DELETE FROM messages WHERE session_id IN (${LISTED})`, params: [sessions] }],
  searchMessages: (words, limit) => ({
    sql: `SELECT no AS message_no FROM messages, plainto_tsquery('simple', ?) AS wanted
          WHERE to_tsvector('simple', left(text, ${SEARCHED_CHARS})) @@ wanted
          ORDER BY ts_rank(to_tsvector('simple', left(text, ${SEARCHED_CHARS})), wanted) DESC, no DESC LIMIT ?`,
    params: [words.join(' '), limit],
  }),
  factSearch: ["CREATE INDEX facts_search ON facts USING gin (to_tsvector('simple', words))"],
  // The words are letters and digits alone, so they need no quoting.
  recallFacts: (columns, owner, words, limit) => ({
    sql: `SELECT ${columns} FROM facts, to_tsquery('simple', ?) AS wanted
          WHERE owner = ? AND to_tsvector('simple', words) @@ wanted
          ORDER BY ts_rank(to_tsvector('simple', words), wanted) DESC, no DESC LIMIT ?`,
    params: [words.join(' | '), owner, limit],
  }),
  settings: `SELECT 'version' AS name, current_setting('server_version') AS value
    UNION ALL SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
    UNION ALL SELECT 'bytes', pg_database_size(current_database())::text`,
  integrityCheck: null,
};
