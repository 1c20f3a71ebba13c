import type { Dialect } from '../dialect.ts';

/** What chat platforms need: who was let in, who holds which credential, which places there are, how a reply looks. */
export function statements({ integer, text }: Dialect): string[] {
  return [
    `CREATE TABLE pairings (
      platform ${text} NOT NULL,
      user_id ${text} NOT NULL,
      name ${text},
      request_id ${text} NOT NULL,
      salt ${text} NOT NULL,
      code_hash ${text} NOT NULL,
      requested_at ${integer} NOT NULL,
      expires_at ${integer},
      approved_at ${integer},
      PRIMARY KEY (platform, user_id)
    )`,
    `CREATE TABLE pairing_locks (
      platform ${text} PRIMARY KEY,
      failures ${integer} NOT NULL,
      locked_until ${integer}
    )`,
    `CREATE TABLE credentials (
      name ${text} PRIMARY KEY,
      instance ${text} NOT NULL,
      taken_at ${integer} NOT NULL
    )`,
    `CREATE TABLE places (
      platform ${text} NOT NULL,
      id ${text} NOT NULL,
      place ${text} NOT NULL,
      name ${text},
      alias ${text},
      seen_at ${integer} NOT NULL,
      gone_at ${integer},
      gone_because ${text},
      PRIMARY KEY (platform, id)
    )`,
    'CREATE UNIQUE INDEX places_by_alias ON places (alias) WHERE alias IS NOT NULL',
    // What a reply is beside its text: buttons, the message it takes the place of.
    `ALTER TABLE deliveries ADD COLUMN shape ${text}`,
    `ALTER TABLE deliveries ADD COLUMN message_id ${text}`,
  ];
}
