import type pg from 'pg';
import { assertNotNewer, migrate, SCHEMA_VERSION } from '../migrations/migrations.ts';
import { ask, SCHEMA } from './connection.ts';
import { answeredWithin, type Deadlines } from './deadlines.ts';
import { postgresDialect } from './dialect.ts';
import { wantsRetry } from './errors.ts';
import { commit, runOn } from './transact.ts';

/** A large store takes its time. */
const MIGRATION_MS = 3_600_000;
/** Of the deadline of a try. Longer, and all who write would wait behind a migration that waits for a dump. */
const SHARE_OF_LOCK = 0.2;
const SHARE_OF_PAUSE = 0.1;

/** Brings the schema up to date; processes that start together do it one after the other. */
export async function migrateServer(client: pg.Client, { tryMs, totalMs }: Deadlines): Promise<void> {
  if ((await answeredWithin(tryMs, client, () => schemaVersion(client))) === SCHEMA_VERSION) return;
  const lockMs = Math.round(tryMs * SHARE_OF_LOCK);
  for (const until = performance.now() + totalMs; ; ) {
    try {
      return await answeredWithin(MIGRATION_MS, client, () => migrateOnce(client, lockMs));
    } catch (thrown) {
      if (!wantsRetry(thrown) || performance.now() > until) throw thrown;
      await new Promise((done) => setTimeout(done, tryMs * SHARE_OF_PAUSE));
    }
  }
}

async function migrateOnce(client: pg.Client, lockMs: number): Promise<void> {
  await ask(client, 'BEGIN');
  try {
    await ask(client, 'SET LOCAL statement_timeout = 0');
    await ask(client, `SET LOCAL lock_timeout = ${MIGRATION_MS}`);
    await ask(client, "SELECT pg_advisory_xact_lock(hashtextextended('moirai:migrate', 2))");
    await ask(client, `SET LOCAL lock_timeout = ${lockMs}`);
    await ask(client, `CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`);
    // Every transaction reads the version: those that have read the old one end first, and no other begins meanwhile.
    if (await hasTables(client)) await ask(client, 'LOCK TABLE meta IN ACCESS EXCLUSIVE MODE');
    await commit(client, await runOn(client, migrate(postgresDialect)));
  } catch (thrown) {
    await ask(client, 'ROLLBACK').catch(() => undefined); // Without its connection nothing is left to undo.
    throw thrown;
  }
}

/** The version of the schema; refused when it is newer than this program. */
export async function schemaVersion(client: pg.Client): Promise<number> {
  if (!(await hasTables(client))) return 0;
  const [row] = await ask(client, "SELECT value FROM meta WHERE name = 'schema'");
  const version = Number(row?.value ?? 0);
  assertNotNewer(version);
  return version;
}

async function hasTables(client: pg.Client): Promise<boolean> {
  const [row] = await ask(client, `SELECT to_regclass('${SCHEMA}.meta') IS NOT NULL AS there`);
  return Boolean(row?.there);
}
