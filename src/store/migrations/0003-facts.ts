import type { Dialect } from '../dialect.ts';

/** What is remembered about people beyond their sessions, found by its words. */
export function statements(dialect: Dialect): string[] {
  const { integer, text, serialKey, factSearch } = dialect;
  return [
    `CREATE TABLE facts (
      no ${serialKey},
      id ${text} NOT NULL,
      owner ${text} NOT NULL,
      text ${text} NOT NULL,
      words ${text} NOT NULL,
      source ${text},
      at ${integer} NOT NULL
    )`,
    // An id belongs to whoever used it: nobody finds out what others have by trying ids.
    'CREATE UNIQUE INDEX facts_once ON facts (owner, id)',
    'CREATE INDEX facts_by_owner ON facts (owner, no)',
    ...factSearch,
  ];
}
