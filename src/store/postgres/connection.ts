import type { Socket } from 'node:net';
import pg from 'pg';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Row } from '../transaction.ts';
import { answeredWithin, DEADLINES, type Deadlines } from './deadlines.ts';
import { fromDriver } from './errors.ts';
import { runBatch } from './pipeline.ts';

const MIN_VERSION = 150_000;
export const SCHEMA = 'moirai';
const BACKUP_STATEMENT_MS = 600_000;

/** Parameters of a URL that change how the driver talks, or set what the store sets itself. */
const UNUSABLE = [
  'binary',
  'client_encoding',
  'encoding',
  'idle_in_transaction_session_timeout',
  'lock_timeout',
  'query_timeout',
  'replication',
  'statement_timeout',
];

/** How connections are made. What a session of the server is set to comes afterwards; see `settle`. */
export function connectionOptions(url: string, deadlines: Deadlines): pg.ClientConfig {
  const { searchParams } = parseUrl(url);
  const unusable = UNUSABLE.find((name) => {
    return searchParams.getAll(name).some((value) => !(name.endsWith('encoding') && /^utf-?8$/i.test(value)));
  });
  if (unusable !== undefined) {
    throw new MoiraiError('store_url', `the store URL has the parameter "${unusable}", which Moirai sets itself`);
  }
  return {
    connectionString: url,
    application_name: 'moirai',
    keepAlive: true,
    connectionTimeoutMillis: deadlines.tryMs,
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
  const shown = parseUrl(url);
  if (shown.password !== '') shown.password = '***';
  if (shown.searchParams.has('password')) shown.searchParams.set('password', '***');
  return shown.toString();
}

function parseUrl(url: string): URL {
  try {
    return new URL(url);
  } catch (thrown) {
    throw new MoiraiError('store_url', 'the store URL is not a valid postgres:// URL', { cause: thrown });
  }
}

/**
 * Sets what the store depends on, once per connection. As statements, not as options of the connection: options in the
 * URL would replace them, and poolers refuse them.
 */
export async function settle(client: pg.Client, { tryMs }: Deadlines): Promise<void> {
  const settings: Readonly<Record<string, string>> = {
    search_path: SCHEMA,
    timezone: 'UTC',
    client_encoding: 'UTF8',
    default_transaction_isolation: 'read committed',
    idle_session_timeout: '0',
    // Before our own deadline: then the server has said that nothing was done.
    lock_timeout: String(Math.round(tryMs * 0.8)),
    statement_timeout: String(Math.round(tryMs * 0.9)),
    // A process that is frozen in the middle of a transaction must not hold a conversation longer than this.
    idle_in_transaction_session_timeout: String(tryMs),
  };
  const sql = `SELECT ${Object.keys(settings).map((name) => `set_config('${name}', ?, false)`)}`;
  await answeredWithin(tryMs, client, () => ask(client, sql, ...Object.values(settings)));
}

/** One statement outside of any transaction. */
export async function ask(client: pg.Client, sql: string, ...params: string[]): Promise<Row[]> {
  const [rows = []] = await runBatch(client, [{ sql, params }]);
  return rows;
}

/** Refuses a server that cannot keep the promises. */
export async function assertSafe(client: pg.Client): Promise<void> {
  const [row = {}] = await ask(
    client,
    `SELECT current_setting('server_version_num')::int AS version, current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS commit, current_setting('server_encoding') AS encoding,
       pg_is_in_recovery()::int AS standby`,
  );
  const refuse = (what: string): never => {
    throw new MoiraiError('store_unsafe', what);
  };
  if (Number(row.version) < MIN_VERSION) refuse('PostgreSQL 15 or newer is needed');
  if (row.fsync !== 'on') refuse('the server runs with fsync off; set fsync = on');
  if (row.commit === 'off') refuse('synchronous_commit is off; set it to on (or remote_apply with a standby)');
  if (row.encoding !== 'UTF8') refuse(`the database is encoded as ${row.encoding}; create it with encoding UTF8`);
  if (Number(row.standby) !== 0) refuse('the server is a standby; point store.url at the primary');
}

/** A connection beside those of the pool. */
export async function connectAlone(options: pg.ClientConfig, deadlines: Deadlines): Promise<pg.Client> {
  const client = new pg.Client(options);
  client.on('error', () => undefined); // What is asked next tells.
  try {
    await client.connect();
    await settle(client, deadlines);
    return client;
  } catch (thrown) {
    client.connection.stream.destroy();
    throw fromDriver(thrown);
  }
}

/** A connection for a backup or a restoration, whose statements take as long as the store is large. */
export async function connectForBackup(url: string): Promise<pg.Client> {
  const client = await connectAlone(connectionOptions(url, DEADLINES), DEADLINES);
  // The driver's own timer goes on after a batch of statements was answered, and keeps the process from ending.
  const stream = client.connection.stream as Socket;
  stream.setTimeout(BACKUP_STATEMENT_MS, () => stream.destroy());
  await ask(client, `SET statement_timeout = ${BACKUP_STATEMENT_MS}`);
  return client;
}
