import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';

export type SqlRow = Readonly<Record<string, string | number | null>>;

/** Looks at the tables behind the store's back. */
export interface Sql {
  readonly engine: 'sqlite' | 'postgres';
  all(sql: string, ...params: (string | number)[]): Promise<SqlRow[]>;
  close(): Promise<void>;
}

export async function openSql(url: string): Promise<Sql> {
  return url.startsWith('sqlite:') ? openSqlite(url.slice('sqlite:'.length)) : openPostgres(url);
}

function openSqlite(path: string): Sql {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 10_000 });
  return {
    engine: 'sqlite',
    all: async (sql, ...params) => db.prepare(sql).all(...params) as SqlRow[],
    close: async () => db.close(),
  };
}

async function openPostgres(url: string): Promise<Sql> {
  const client = new pg.Client({ connectionString: url, options: '-c search_path=moirai' });
  client.on('error', () => undefined); // The query that meets the broken connection reports it.
  await client.connect();
  return {
    engine: 'postgres',
    all: async (sql, ...params) => {
      let n = 0;
      const { rows } = await client.query<SqlRow>(
        sql.replace(/\?/g, () => `$${++n}`),
        params,
      );
      return rows;
    },
    close: () => client.end(),
  };
}

/** 64-bit integers come as text from PostgreSQL. */
export function whole(row: SqlRow, column: string): number {
  return Number(row[column]);
}

export function text(row: SqlRow, column: string): string {
  return String(row[column]);
}

/** The rows of a query with `no > ?` and `LIMIT ?`, a page at a time. */
export async function* pages(sql: Sql, query: string, size = 10_000): AsyncGenerator<SqlRow> {
  for (let after = 0; ; ) {
    const rows = await sql.all(query, after, size);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) return;
    after = whole(last, 'no');
  }
}
