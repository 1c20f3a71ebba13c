import type { Dialect } from '../dialect.ts';

/** Who was let in and may do everything. */
export function statements({ integer }: Dialect): string[] {
  return [`ALTER TABLE pairings ADD COLUMN admin ${integer} NOT NULL DEFAULT 0`];
}
