import type { Dialect } from '../dialect.ts';

/** Chats that go on under another id, and what their conversations are called. */
export function statements({ integer, text }: Dialect): string[] {
  return [
    `CREATE TABLE moved_chats (
      platform ${text} NOT NULL,
      chat ${text} NOT NULL,
      known_as ${text} NOT NULL,
      moved_at ${integer} NOT NULL,
      PRIMARY KEY (platform, chat)
    )`,
  ];
}
