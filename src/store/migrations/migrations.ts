import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Dialect } from '../dialect.ts';
import { integer, selectValues } from '../table.ts';
import { query, type Tx } from '../transaction.ts';
import { statements as sessions } from './0001-sessions.ts';
import { statements as deletion } from './0002-deletion.ts';
import { statements as facts } from './0003-facts.ts';
import { statements as platforms } from './0004-platforms.ts';
import { statements as jobs } from './0005-jobs.ts';
import { statements as timeline } from './0006-timeline.ts';
import { statements as queue } from './0007-queue.ts';
import { statements as commands } from './0008-commands.ts';
import { statements as speakers } from './0009-speakers.ts';
import { statements as parking } from './0010-parking.ts';
import { statements as apiKeys } from './0011-api-keys.ts';
import { statements as admins } from './0012-admins.ts';
import { statements as approvals } from './0013-approvals.ts';
import { statements as turnFiles } from './0014-turn-files.ts';
import { statements as movedChats } from './0015-moved-chats.ts';
import { statements as platformContract } from './0016-platform-contract.ts';

/** Forward only. A step is never edited once released: the next one corrects it. */
const STEPS: readonly ((dialect: Dialect) => string[])[] = [
  sessions,
  deletion,
  facts,
  platforms,
  jobs,
  timeline,
  queue,
  commands,
  speakers,
  parking,
  apiKeys,
  admins,
  approvals,
  turnFiles,
  movedChats,
  platformContract,
];

export const SCHEMA_VERSION = STEPS.length;

/**
 * Brings a store to this program's schema, in the caller's transaction: all of it happens, or none. A newer schema
 * is refused, since an older program could break promises it does not know.
 */
export function* migrate(dialect: Dialect): Tx<{ from: number; to: number }> {
  yield* query(`CREATE TABLE IF NOT EXISTS meta (name ${dialect.text} PRIMARY KEY, value ${dialect.text} NOT NULL)`);
  const [from = 0] = yield* selectValues(
    integer,
    `SELECT CAST(value AS ${dialect.integer}) FROM meta WHERE name = 'schema'`,
  );
  assertNotNewer(from);
  for (const step of STEPS.slice(from)) {
    for (const sql of step(dialect)) yield* query(sql);
  }
  if (from < SCHEMA_VERSION) {
    yield* query(
      `INSERT INTO meta (name, value) VALUES ('schema', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      String(SCHEMA_VERSION),
    );
  }
  return { from, to: SCHEMA_VERSION };
}

/**
 * Refuses a schema that a newer program has raised since this one opened the store. Part of every
 * transaction that writes: the newer program may keep promises that this one would break.
 */
export function* refuseNewer(): Tx<void> {
  const [row] = yield* query("SELECT value FROM meta WHERE name = 'schema'");
  assertNotNewer(Number(row?.value ?? 0));
}

export function assertNotNewer(version: number): void {
  if (version <= SCHEMA_VERSION) return;
  throw new MoiraiError(
    'store_newer',
    `the store has schema ${version}, this program knows schemas up to ${SCHEMA_VERSION}`,
    { details: { found: version, known: SCHEMA_VERSION } },
  );
}
