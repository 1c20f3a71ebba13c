import type { DatabaseSync } from 'node:sqlite';

/** A table as both engines have it. */
export interface StoreTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** Its rows are numbered by the engine, in the column `no`. */
  readonly numbered: boolean;
}

/** The tables of a store, without those that an engine makes of others by itself (the full-text index). */
export function tablesOf(db: DatabaseSync): StoreTable[] {
  const names = db
    .prepare(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name",
    )
    .all();
  return names.map(({ name }) => {
    const columns = db.prepare('SELECT name FROM pragma_table_info(?) ORDER BY cid').all(String(name));
    const all = columns.map((column) => String(column.name));
    return { name: String(name), columns: all, numbered: all[0] === 'no' };
  });
}
