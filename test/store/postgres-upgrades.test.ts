import { expect, test } from 'vitest';
import { SCHEMA_VERSION } from '../../src/store/migrations/migrations.ts';
import { isStaleStatement } from '../../src/store/postgres/errors.ts';
import { forgetPrepared, runBatch } from '../../src/store/postgres/pipeline.ts';
import { codeOf } from './contract/code-of.ts';
import { DEADLINES, PATIENT, TroubledDatabase } from './troubled-database.ts';

// Dumps, registrations and upgrades beside writers: who waits for whom, and what an open store makes of changed tables.

const troubled = TroubledDatabase.forThisFile();

test('a subscriber is registered while a dump of the database runs, and no writer waits for it', async () => {
  const scene = await troubled.scene({ deadlines: { ...DEADLINES, slowMs: DEADLINES.totalMs } });
  const dump = await troubled.connect();
  await dump.query('BEGIN');
  const tables = await dump.query(
    "SELECT quote_ident(relname) AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'moirai'::regnamespace",
  );
  await dump.query(`LOCK TABLE ${tables.rows.map(({ name }) => name).join(', ')} IN ACCESS SHARE MODE`);
  expect(await scene.subscribe('during-a-dump')).toEqual({ created: true });
  await scene.say('during-a-dump', 'hello');
  expect(await scene.claim('during-a-dump')).toHaveLength(1);
  await scene.store.write('unsubscribe', { name: 'during-a-dump' });
  await dump.end();
  await scene.opened.close();
});

test('a registration that waits for a stuck writer lets the others write', async () => {
  const scene = await troubled.scene({ deadlines: PATIENT });
  const release = await troubled.hold(scene.conversation('stuck').key);
  const stuck = scene.say('stuck', 'hello');
  await troubled.untilWaiting(1);
  let registered = false;
  const subscribed = scene.subscribe('patient').then(() => {
    registered = true;
  });
  await troubled.untilWaiting(2);
  const began = performance.now();
  for (let i = 0; i < 10; i++) await scene.say('free', String(i));
  expect(performance.now() - began).toBeLessThan(15_000);
  expect(registered).toBe(false);
  await release();
  await Promise.all([stuck, subscribed]);
  await scene.store.write('unsubscribe', { name: 'patient' });
  await scene.opened.close();
});

test('a table that changes under an open store spoils no prepared statement for longer than a try', async () => {
  const scene = await troubled.scene();
  const ask = () =>
    Promise.all([
      ...Array.from({ length: 6 }, () => scene.store.read('findSetting', { name: 'home' })),
      ...Array.from({ length: 6 }, (_, i) => scene.store.write('keepSetting', { name: `setting-${i}`, value: 'one' })),
    ]);
  await ask();
  await troubled.outside.query('ALTER TABLE meta ADD COLUMN newer TEXT');
  await ask();
  await troubled.outside.query('ALTER TABLE meta ALTER COLUMN value TYPE VARCHAR');
  await ask();
  await scene.opened.close();
});

test('a newer program that has also changed the tables is told as such', async () => {
  const scene = await troubled.scene();
  await scene.say('renamed', 'hello');
  await troubled.outside.query(`BEGIN; UPDATE meta SET value = '999' WHERE name = 'schema';
    ALTER TABLE turns RENAME COLUMN text TO words; COMMIT`);
  try {
    expect(await codeOf(scene.say('renamed', 'hello'))).toBe('store_newer');
  } finally {
    await troubled.outside.query(`BEGIN; UPDATE meta SET value = '${SCHEMA_VERSION}' WHERE name = 'schema';
      ALTER TABLE turns RENAME COLUMN words TO text; COMMIT`);
  }
  await scene.say('renamed', 'hello');
  await scene.opened.close();
});

test('a statement that its connection has forgotten is prepared anew', async () => {
  const client = await troubled.connect();
  const ask = () => runBatch(client, [{ sql: 'SELECT 1 AS one', params: [] }]);
  await ask();
  await client.query('DEALLOCATE ALL');
  const refusal: unknown = await ask().catch((thrown: unknown) => thrown);
  expect(isStaleStatement(refusal)).toBe(true);
  forgetPrepared();
  expect(await ask()).toEqual([[{ one: 1 }]]);
  await client.end();
});

test('a schema is not raised while a dump runs, and writers pass meanwhile', async () => {
  const scene = await troubled.scene();
  await scene.say('upgraded', 'hello');
  const dump = await troubled.connect();
  await dump.query('BEGIN; LOCK TABLE meta IN ACCESS SHARE MODE');
  await troubled.outside.query("UPDATE meta SET value = '1' WHERE name = 'schema'");
  let opening = true;
  const opened = codeOf(troubled.scene()).finally(() => {
    opening = false;
  });
  const began = performance.now();
  let written = 0;
  while (opening) {
    await scene.say('upgraded', 'hello');
    written++;
  }
  expect(await opened).toBe('store_locked');
  expect(performance.now() - began).toBeGreaterThan(DEADLINES.totalMs - 500);
  expect(written).toBeGreaterThan(5);
  await troubled.outside.query(`UPDATE meta SET value = '${SCHEMA_VERSION}' WHERE name = 'schema'`);
  await dump.end();
  await scene.opened.close();
});
