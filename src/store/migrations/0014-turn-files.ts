import type { Dialect } from '../dialect.ts';

/** What came with a message and is fetched in its turn. */
export function statements({ text, integer }: Dialect): string[] {
  return [
    `CREATE TABLE turn_files (
      turn_id ${text} NOT NULL,
      position ${integer} NOT NULL,
      platform ${text} NOT NULL,
      line ${text} NOT NULL,
      file ${text} NOT NULL
    )`,
    'CREATE INDEX turn_files_turn ON turn_files (turn_id, position)',
  ];
}
