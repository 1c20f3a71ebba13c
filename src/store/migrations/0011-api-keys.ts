import type { Dialect } from '../dialect.ts';

/** Keys of HTTP clients. Only a hash is kept: whoever reads the store cannot use them. */
export function statements({ integer, text }: Dialect): string[] {
  return [
    `CREATE TABLE api_keys (
      name ${text} PRIMARY KEY,
      hash ${text} NOT NULL UNIQUE,
      scopes ${text} NOT NULL,
      created_at ${integer} NOT NULL
    )`,
  ];
}
