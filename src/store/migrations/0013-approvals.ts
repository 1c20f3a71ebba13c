import type { Dialect } from '../dialect.ts';

/** What agents ask people to allow, what was answered, what is allowed for good; and what is asked of running turns. */
export function statements({ integer, text }: Dialect): string[] {
  return [
    `CREATE TABLE approvals (
      id ${text} PRIMARY KEY,
      session_id ${text} NOT NULL,
      session_key ${text} NOT NULL,
      turn_id ${text} NOT NULL,
      instance ${text} NOT NULL,
      tool ${text} NOT NULL,
      summary ${text} NOT NULL,
      exact ${text} NOT NULL,
      asked_of ${text},
      asked_at ${integer} NOT NULL,
      expires_at ${integer} NOT NULL,
      decision ${text} CHECK (decision IN ('once', 'session', 'always', 'deny', 'expired')),
      reason ${text},
      answered_by ${text},
      answered_at ${integer},
      answer_id ${text},
      CHECK ((decision IS NULL) = (answered_at IS NULL))
    )`,
    'CREATE INDEX approvals_waiting ON approvals (session_key, asked_at) WHERE decision IS NULL',
    "CREATE INDEX approvals_of_session ON approvals (session_id, exact) WHERE decision = 'session'",
    'CREATE INDEX approvals_by_session ON approvals (session_id)',
    `CREATE TABLE approval_rules (
      exact ${text} PRIMARY KEY,
      id ${text} NOT NULL,
      tool ${text} NOT NULL,
      summary ${text} NOT NULL,
      made_by ${text},
      made_at ${integer} NOT NULL
    )`,
    `CREATE TABLE turn_requests (
      id ${text} PRIMARY KEY,
      turn_id ${text} NOT NULL,
      kind ${text} NOT NULL,
      value ${text},
      at ${integer} NOT NULL
    )`,
    'CREATE INDEX turn_requests_by_turn ON turn_requests (turn_id)',
  ];
}
