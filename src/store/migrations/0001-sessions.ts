import {
  END_REASONS,
  LINEAGES,
  RESUME_REASONS,
  SESSION_KINDS,
  SESSION_STATES,
  TURN_OUTCOMES,
  TURN_STATES,
} from '../../lifecycle/states.ts';
import type { Dialect } from '../dialect.ts';

/** Columns that hold one of a few words. */
const VOCABULARIES = {
  session_kind: SESSION_KINDS,
  session_state: SESSION_STATES,
  lineage: LINEAGES,
  end_reason: END_REASONS,
  resume_reason: RESUME_REASONS,
  turn_state: TURN_STATES,
  turn_outcome: TURN_OUTCOMES,
  actor: ['user', 'system'],
} as const;

/** The first schema. Rules that must hold whatever the code does are written here as constraints. */
export function statements(dialect: Dialect): string[] {
  const { integer, text, serialKey, clustered, oftenUpdated, endedIsFinal, ownTables } = dialect;
  const word = (column: string, vocabulary: keyof typeof VOCABULARIES): string =>
    `${column} ${dialect.word(column, vocabulary, VOCABULARIES[vocabulary])}`;
  return [
    ...Object.entries(VOCABULARIES).flatMap(([name, words]) => dialect.vocabulary(name, words)),
    `CREATE TABLE instances (
      id ${text} PRIMARY KEY,
      name ${text},
      version ${text} NOT NULL,
      host ${text} NOT NULL,
      boot_id ${text},
      pid_space ${text},
      pid ${integer} NOT NULL,
      pid_started ${text},
      state ${text} NOT NULL CHECK (state IN ('up', 'dead')),
      started_at ${integer} NOT NULL,
      heartbeat_at ${integer} NOT NULL,
      lease_until ${integer} NOT NULL,
      lost_at ${integer}
    )`,
    `CREATE TABLE sessions (
      id ${text} PRIMARY KEY,
      key ${text} NOT NULL,
      ${word('kind', 'session_kind')} NOT NULL,
      platform ${text} NOT NULL,
      user_id ${text},
      origin ${text},
      parent_id ${text},
      ${word('lineage', 'lineage')},
      attached ${integer} NOT NULL CHECK (attached IN (0, 1)),
      started_at ${integer} NOT NULL,
      title ${text},
      ${word('state', 'session_state')} NOT NULL,
      last_activity_at ${integer} NOT NULL,
      last_system_at ${integer},
      expires_at ${integer},
      expires_cause ${text},
      check_at ${integer},
      ended_at ${integer},
      ${word('end_reason', 'end_reason')},
      end_cause ${text},
      message_count ${integer} NOT NULL,
      tokens_in ${integer} NOT NULL,
      tokens_out ${integer} NOT NULL,
      owner ${text},
      epoch ${integer} NOT NULL,
      last_heartbeat_at ${integer},
      ${word('resume_reason', 'resume_reason')},
      resume_at ${integer},
      cuts ${integer} NOT NULL,
      background ${integer} NOT NULL,
      seq ${integer} NOT NULL,
      version ${integer} NOT NULL,
      last_command ${text},
      recent_commands ${text} NOT NULL,
      CHECK ((state = 'ended') = (ended_at IS NOT NULL)),
      CHECK ((state = 'ended') = (end_reason IS NOT NULL)),
      CHECK (state <> 'ended' OR (owner IS NULL AND expires_at IS NULL AND check_at IS NULL)),
      CHECK (expires_at IS NULL OR (check_at IS NOT NULL AND check_at <= expires_at))
    ) ${oftenUpdated}`,
    "CREATE UNIQUE INDEX sessions_one_open_per_key ON sessions (key) WHERE state <> 'ended'",
    'CREATE INDEX sessions_by_start ON sessions (started_at, id)',
    'CREATE INDEX sessions_by_key ON sessions (key, started_at)',
    // What every message changes is in no index: a message would write each of them twice.
    'CREATE INDEX sessions_due ON sessions (check_at, id) WHERE check_at IS NOT NULL',
    "CREATE INDEX sessions_attached ON sessions (id) WHERE attached = 1 AND state <> 'ended'",
    'CREATE INDEX sessions_in_background ON sessions (id) WHERE background > 0',
    "CREATE INDEX sessions_open_children ON sessions (parent_id) WHERE kind = 'child' AND state <> 'ended'",
    `CREATE TABLE turns (
      id ${text} PRIMARY KEY,
      session_id ${text} NOT NULL,
      origin_ref ${text},
      ${word('by_actor', 'actor')} NOT NULL,
      user_id ${text},
      ${word('state', 'turn_state')} NOT NULL,
      ${word('outcome', 'turn_outcome')},
      text ${text} NOT NULL,
      created_at ${integer} NOT NULL,
      started_at ${integer},
      ended_at ${integer},
      cuts ${integer} NOT NULL,
      response ${text},
      model ${text},
      tokens_in ${integer},
      tokens_out ${integer},
      error ${text},
      CHECK ((state = 'over') = (outcome IS NOT NULL))
    ) ${clustered}`,
    'CREATE UNIQUE INDEX turns_once_per_message ON turns (origin_ref) WHERE origin_ref IS NOT NULL',
    "CREATE INDEX turns_unfinished ON turns (session_id, created_at, id) WHERE state <> 'over'",
    // All sessions that have an owner: the lifecycle gives one to these and to no others.
    `CREATE VIEW owned_sessions AS
       SELECT s.id, s.owner FROM turns t JOIN sessions s ON s.id = t.session_id
         WHERE t.state <> 'over' AND t.state = 'running' AND s.owner IS NOT NULL
       UNION SELECT id, owner FROM sessions WHERE attached = 1 AND state <> 'ended' AND owner IS NOT NULL
       UNION SELECT id, owner FROM sessions WHERE background > 0 AND owner IS NOT NULL`,
    `CREATE TABLE messages (
      no ${serialKey},
      session_id ${text} NOT NULL,
      position ${integer} NOT NULL,
      role ${text} NOT NULL,
      text ${text} NOT NULL,
      at ${integer} NOT NULL,
      turn_id ${text},
      data ${text}
    )`,
    'CREATE UNIQUE INDEX messages_in_order ON messages (session_id, position)',
    `CREATE TABLE events (
      no ${serialKey},
      session_id ${text},
      session_seq ${integer},
      session_key ${text} NOT NULL,
      type ${text} NOT NULL,
      at ${integer} NOT NULL,
      body ${text} NOT NULL
    )`,
    'CREATE INDEX events_by_key ON events (session_key, no)',
    "CREATE UNIQUE INDEX events_one_start ON events (session_id) WHERE type = 'session:start'",
    "CREATE UNIQUE INDEX events_one_end ON events (session_id) WHERE type = 'session:end'",
    `CREATE TABLE subscribers (
      name ${text} PRIMARY KEY,
      patterns ${text} NOT NULL,
      created_at ${integer} NOT NULL
    )`,
    // A lane is a conversation's undelivered events for one subscriber. It exists while there are some.
    `CREATE TABLE lanes (
      subscriber ${text} NOT NULL,
      session_key ${text} NOT NULL,
      next_no ${integer} NOT NULL,
      last_no ${integer} NOT NULL,
      due_at ${integer} NOT NULL,
      attempts ${integer} NOT NULL,
      waits ${integer} NOT NULL,
      token ${text},
      claimed_by ${text},
      claimed_until ${integer},
      last_error ${text},
      PRIMARY KEY (subscriber, session_key)
    ) ${clustered}`,
    'CREATE INDEX lanes_due ON lanes (subscriber, due_at)',
    `CREATE TABLE dead_letters (
      subscriber ${text} NOT NULL,
      event_no ${integer} NOT NULL,
      session_key ${text} NOT NULL,
      event_id ${text} NOT NULL,
      attempts ${integer} NOT NULL,
      error ${text} NOT NULL,
      at ${integer} NOT NULL,
      replay ${integer} NOT NULL,
      PRIMARY KEY (subscriber, event_no)
    ) ${clustered}`,
    'CREATE INDEX dead_letters_by_lane ON dead_letters (subscriber, session_key, event_no)',
    `CREATE TABLE deliveries (
      id ${text} PRIMARY KEY,
      session_id ${text} NOT NULL,
      turn_id ${text},
      platform ${text} NOT NULL,
      target ${text} NOT NULL,
      text ${text} NOT NULL,
      state ${text} NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'failed')),
      attempts ${integer} NOT NULL,
      possible_duplicate ${integer} NOT NULL,
      due_at ${integer},
      claimed_by ${text},
      error ${text},
      created_at ${integer} NOT NULL,
      sent_at ${integer}
    )`,
    'CREATE INDEX deliveries_due ON deliveries (due_at) WHERE due_at IS NOT NULL',
    "CREATE INDEX deliveries_unsent ON deliveries (session_id) WHERE state = 'queued' OR state = 'sending'",
    "CREATE INDEX deliveries_claimed ON deliveries (claimed_by) WHERE state = 'sending'",
    ...endedIsFinal,
    ...ownTables,
  ];
}
