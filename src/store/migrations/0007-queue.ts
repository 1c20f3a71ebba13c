import type { Dialect } from '../dialect.ts';

/**
 * One queue for events, replies and ticks of jobs: all of them wait in lanes. Replies get a number, by which they leave
 * in the order they were written in, and lose the marks of their own former queue; the next tick of a job is its lane.
 */
export function statements({ integer, text, serialKey, clustered }: Dialect): string[] {
  return [
    // Whatever the code does: one turn of a session runs at a time.
    "CREATE UNIQUE INDEX turns_running ON turns (session_id) WHERE state = 'running'",
    'DROP INDEX lanes_due',
    'ALTER TABLE lanes RENAME TO old_lanes',
    `CREATE TABLE lanes (
      queue ${text} NOT NULL,
      key ${text} NOT NULL,
      next_no ${integer} NOT NULL,
      last_no ${integer} NOT NULL,
      due_at ${integer} NOT NULL,
      attempts ${integer} NOT NULL,
      waits ${integer} NOT NULL,
      interrupted ${integer} NOT NULL,
      token ${text},
      claimed_by ${text},
      error ${text},
      PRIMARY KEY (queue, key),
      CHECK ((token IS NULL) = (claimed_by IS NULL))
    ) ${clustered}`,
    'CREATE INDEX lanes_due ON lanes (queue, due_at, next_no) WHERE token IS NULL',
    'CREATE INDEX lanes_claimed ON lanes (claimed_by) WHERE claimed_by IS NOT NULL',
    `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted, error)
     SELECT 'events/' || subscriber, session_key, next_no, last_no, due_at, attempts, waits,
       CASE WHEN token IS NULL THEN 0 ELSE 1 END, last_error FROM old_lanes`,
    'DROP TABLE old_lanes',

    'DROP INDEX deliveries_due',
    'DROP INDEX deliveries_unsent',
    'DROP INDEX deliveries_claimed',
    'DROP INDEX deliveries_by_session',
    'ALTER TABLE deliveries RENAME TO old_deliveries',
    `CREATE TABLE deliveries (
      no ${serialKey},
      id ${text} NOT NULL,
      session_id ${text} NOT NULL,
      session_key ${text} NOT NULL,
      turn_id ${text},
      platform ${text} NOT NULL,
      target ${text} NOT NULL,
      text ${text} NOT NULL,
      shape ${text},
      state ${text} NOT NULL CHECK (state IN ('queued', 'sent', 'failed')),
      attempts ${integer} NOT NULL,
      error ${text},
      created_at ${integer} NOT NULL,
      sent_at ${integer},
      message_id ${text}
    )`,
    `INSERT INTO deliveries (id, session_id, session_key, turn_id, platform, target, text, shape, state, attempts, error,
       created_at, sent_at, message_id)
     SELECT d.id, d.session_id, coalesce(s.key, d.session_id), d.turn_id, d.platform, d.target, d.text, d.shape,
       CASE WHEN d.state = 'sending' THEN 'queued' ELSE d.state END, d.attempts, d.error, d.created_at, d.sent_at,
       d.message_id
     FROM old_deliveries d LEFT JOIN sessions s ON s.id = d.session_id ORDER BY d.created_at, d.id`,
    `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted)
     SELECT 'replies/' || d.platform, coalesce(s.key, d.session_id), 0, 0, 0, 0, 0,
       max(CASE WHEN d.state = 'sending' THEN 1 ELSE d.possible_duplicate END)
     FROM old_deliveries d LEFT JOIN sessions s ON s.id = d.session_id
     WHERE d.state = 'queued' OR d.state = 'sending' GROUP BY d.platform, coalesce(s.key, d.session_id)`,
    'DROP TABLE old_deliveries',
    'CREATE UNIQUE INDEX deliveries_once ON deliveries (id)',
    "CREATE INDEX deliveries_unsent ON deliveries (platform, session_key, no) WHERE state = 'queued'",
    'CREATE INDEX deliveries_by_session ON deliveries (session_id)',

    `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted)
     SELECT 'ticks', id, next_at, next_at, next_at, 0, 0, 0 FROM jobs WHERE next_at IS NOT NULL`,
    'DROP INDEX jobs_due',
    'ALTER TABLE jobs DROP COLUMN next_at',
  ];
}
