import type { Dialect } from '../dialect.ts';
import { SEARCHED_CHARS } from '../limits.ts';
import { flag, integer, selectValues, text } from '../table.ts';
import { query } from '../transaction.ts';

const HOLD_WRITERS_MS = 500;

const LISTED = 'SELECT value FROM json_array_elements_text(CAST(? AS json)) AS value';

const NUMBER_EVENTS = `WITH numbered AS (
    UPDATE events SET seq = fresh.seq FROM (
      SELECT no, nextval('event_seq') AS seq FROM (SELECT no FROM events WHERE seq IS NULL ORDER BY no LIMIT ?) unnumbered
    ) fresh WHERE events.no = fresh.no RETURNING 1
  ) SELECT count(*) FROM numbered`;

/** The lock of a name: 0 for conversations, 3 for instances; 1 and 2 stand for the store as a whole. */
const KEY_LOCK = 'pg_advisory_xact_lock(hashtextextended(?, 0))';
const LOCK_KEY = `SELECT ${KEY_LOCK}`;
const LOCK_KEY_OF = `SELECT ${KEY_LOCK.replace('?', 'key')} FROM sessions WHERE id = ?`;
// OFFSET 0 keeps the two apart: a lock asked for before the row is chosen would be one for somebody else.
const TRY_LOCK_KEYS_OF = `SELECT id FROM (SELECT id, key FROM sessions WHERE id IN (${LISTED}) OFFSET 0) wanted
  WHERE pg_try_advisory_xact_lock(hashtextextended(key, 0))`;
/**
 * Every writer holds this one too, for registrations of subscribers to wait for. Not a lock of the table, which a dump of
 * the database holds for hours: a registration would wait for that, and all writers for the registration.
 */
const WRITERS = "hashtextextended('moirai:writers', 1)";
const SHARE_INSTANCE = `SELECT pg_advisory_xact_lock_shared(${WRITERS}), pg_advisory_xact_lock_shared(hashtextextended(?, 3))`;
const TAKE_INSTANCE = 'SELECT pg_advisory_xact_lock(hashtextextended(?, 3))';
const TRY_TAKE_INSTANCE = 'SELECT pg_try_advisory_xact_lock(hashtextextended(?, 3))';

/** Any number of writers: conversations are locked by name, and the log is numbered after the commit. */
export const postgresDialect: Dialect = {
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
  lockKey: (key) => [{ sql: LOCK_KEY, params: [key] }],
  lockKeyOf: (sessionId) => [{ sql: LOCK_KEY_OF, params: [sessionId] }],
  tryLockKeysOf: (sessionIds) => selectValues(text, TRY_LOCK_KEYS_OF, JSON.stringify(sessionIds)),
  shareInstance: (instanceId) => [{ sql: SHARE_INSTANCE, params: [instanceId] }],
  *takeInstance(instanceId) {
    yield* query(TAKE_INSTANCE, instanceId);
  },
  *tryTakeInstance(instanceId) {
    const [held = false] = yield* selectValues(flag, TRY_TAKE_INSTANCE, instanceId);
    return held;
  },
  freshRows: (columns) => {
    const typed = columns.map(([name, kind]) => `${name} ${kind === 'integer' ? 'BIGINT' : 'TEXT'}`);
    return `json_to_recordset(CAST(? AS json)) AS fresh (${typed.join(', ')})`;
  },
  *lockRegistration() {
    yield* query("SELECT pg_advisory_xact_lock(hashtextextended('moirai:subscribe', 1))");
  },
  *holdWriters() {
    // Those who come meanwhile wait behind us: a writer that is stuck must not stop all of them, so we come again later.
    yield* query(`SET LOCAL lock_timeout = ${HOLD_WRITERS_MS}`);
    yield* query(`SELECT pg_advisory_xact_lock(${WRITERS})`);
  },
  // Commit order is not insertion order here: a reader of `no > last` would miss events. Under one lock, whatever is
  // committed and unnumbered gets the next numbers; `no` keeps the order within each conversation.
  *sequenceEvents(limit) {
    const unnumbered = yield* query('SELECT no FROM events WHERE seq IS NULL LIMIT 1');
    if (unnumbered.length === 0) return false;
    yield* query("SELECT pg_advisory_xact_lock(hashtextextended('moirai:sequence', 1))");
    const [numbered] = yield* selectValues(integer, NUMBER_EVENTS, limit);
    return numbered === limit;
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
  // biome-ignore lint/correctness/useYield: the index holds no word that no row has, once the server has vacuumed it.
  *cleanIndex() {
    return false;
  },
  searchMessages: (words, limit, within) => ({
    sql: `SELECT no AS message_no FROM messages, plainto_tsquery('simple', ?) AS wanted
          WHERE to_tsvector('simple', left(text, ${SEARCHED_CHARS})) @@ wanted
          ${within === null ? '' : `AND session_id IN (${within.sql})`}
          ORDER BY ts_rank(to_tsvector('simple', left(text, ${SEARCHED_CHARS})), wanted) DESC, no DESC LIMIT ?`,
    params: [words.join(' '), ...(within?.params ?? []), limit],
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
