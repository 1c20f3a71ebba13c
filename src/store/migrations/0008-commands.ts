import type { Dialect } from '../dialect.ts';

/** Slash commands that were accepted under a name of their sender's: the same again is answered as before, and not done again. */
export function statements({ integer, text }: Dialect): string[] {
  return [
    `CREATE TABLE commands (
      ref ${text} PRIMARY KEY,
      command_id ${text} NOT NULL,
      session_key ${text} NOT NULL,
      body ${text} NOT NULL,
      accepted_at ${integer} NOT NULL,
      answer ${text},
      session_id ${text},
      turn_id ${text}
    )`,
    'CREATE INDEX commands_by_age ON commands (accepted_at)',
  ];
}
