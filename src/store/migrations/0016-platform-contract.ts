import type { Dialect } from '../dialect.ts';

/** What platforms keep for themselves, what an answer needs of its message, and replies that people watch growing. */
export function statements({ integer, text }: Dialect): string[] {
  return [
    `CREATE TABLE platform_state (
      platform ${text} NOT NULL,
      name ${text} NOT NULL,
      value ${text} NOT NULL,
      PRIMARY KEY (platform, name)
    )`,
    // The message of a turn, as far as its answer needs it.
    `ALTER TABLE turns ADD COLUMN reply ${text}`,
    // A reply that came too late: since when it waits for the next message from there.
    `ALTER TABLE deliveries ADD COLUMN held_at ${integer}`,
    'CREATE INDEX deliveries_held ON deliveries (platform, session_key, no) WHERE held_at IS NOT NULL',
    `CREATE TABLE live_replies (
      turn_id ${text} PRIMARY KEY,
      platform ${text} NOT NULL,
      target ${text} NOT NULL,
      handle ${text} NOT NULL,
      created_at ${integer} NOT NULL
    )`,
    'CREATE INDEX live_replies_of ON live_replies (platform, created_at)',
  ];
}
