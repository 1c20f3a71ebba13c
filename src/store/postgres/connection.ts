import pg from 'pg';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { assertNotNewer, migrate, SCHEMA_VERSION } from '../migrations/migrations.ts';
import type { Row } from '../transaction.ts';
import { postgresDialect } from './dialect.ts';
import { commit, runOn } from './transact.ts';

const MIN_VERSION = 150_000;
export const SCHEMA = 'moirai';
/** A process that is frozen in the middle of a transaction must not hold a conversation longer than this. */
const IDLE_IN_TRANSACTION_MS = 10_000;

/** What every connection is set to before it is used. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'moirai',
    keepAlive: true,
    connectionTimeoutMillis: 10_000,
    options:
      `-c search_path=${SCHEMA} -c timezone=UTC -c lock_timeout=20000 ` +
      `-c idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_MS}`,
    types: { getTypeParser },
  };
}

/** 64-bit integers as numbers: ours are counts and milliseconds, far below 2^53. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC) return Number;
  return pg.types.getTypeParser(oid, format as 'text');
}

/** The URL without its password, for people to read. */
export function shownUrl(url: string): string {
  try {
    const shown = new URL(url);
    if (shown.password !== '') shown.password = '***';
    return shown.toString();
  } catch (thrown) {
    throw new MoiraiError('store_url', 'the store URL is not a valid postgres:// URL', { cause: thrown });
  }
}

/** Refuses a server that cannot keep the promises. */
export async function assertSafe(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<Row>(
    `SELECT current_setting('server_version_num')::int AS version, current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS commit, current_setting('server_encoding') AS encoding,
       pg_is_in_recovery()::int AS standby`,
  );
  const row = rows[0] ?? {};
  const refuse = (what: string): never => {
    throw new MoiraiError('store_unsafe', what);
  };
  if (Number(row.version) < MIN_VERSION) refuse('PostgreSQL 15 or newer is needed');
  if (row.fsync !== 'on') refuse('the server runs with fsync off; set fsync = on');
  if (row.commit === 'off') refuse('synchronous_commit is off; set it to on (or remote_apply with a standby)');
  if (row.encoding !== 'UTF8') refuse(`the database is encoded as ${row.encoding}; create it with encoding UTF8`);
  if (Number(row.standby) !== 0) refuse('the server is a standby; point store.url at the primary');
}

/** Brings the schema up to date; processes that start together do it one after the other. */
export async function migrateServer(client: pg.ClientBase): Promise<void> {
  if ((await schemaVersion(client)) === SCHEMA_VERSION) return;
  await client.query('BEGIN');
  try {
    await client.query("SELECT pg_advisory_xact_lock(hashtextextended('moirai:migrate', 2))");
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`);
    await commit(client, await runOn(client, migrate(postgresDialect)));
  } catch (thrown) {
    await client.query('ROLLBACK');
    throw thrown;
  }
}

async function schemaVersion(client: pg.ClientBase): Promise<number> {
  const table = await client.query<Row>(`SELECT to_regclass('${SCHEMA}.meta') IS NOT NULL AS there`);
  if (!table.rows[0]?.there) return 0;
  const { rows } = await client.query<Row>("SELECT value FROM meta WHERE name = 'schema'");
  const version = Number(rows[0]?.value ?? 0);
  assertNotNewer(version);
  return version;
}
