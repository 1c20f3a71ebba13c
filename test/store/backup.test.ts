import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { createBackup } from '../../src/store/backup/backup.ts';
import { restoreBackup } from '../../src/store/backup/restore.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/port.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { bootTestEngine, chatConversation } from '../support/stores.ts';

let folder: string;
const databases: TestDatabase[] = [];
const stores: Store[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'moirai-backup-'));
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const database of databases.splice(0)) await database.drop();
  rmSync(folder, { recursive: true });
});

type EngineName = Store['engine'];

async function newPlace(engine: EngineName): Promise<{ engine: EngineName; place: string; url: string }> {
  if (engine === 'sqlite') {
    const place = join(folder, `${Math.random()}.db`);
    return { engine, place, url: `sqlite:${place}` };
  }
  const database = await createDatabase();
  databases.push(database);
  return { engine, place: database.url, url: database.url };
}

async function open(url: string): Promise<Store> {
  const store = await openStore(url, folder, DEFAULT_RESET_RULES, { inline: true });
  stores.push(store);
  return store;
}

const PAIRS = [
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
  ['postgres', 'postgres'],
] as const;
const file = () => join(folder, 'kept.db');
const quiet = { now: 1_800_000_000_000, progress: () => undefined };

const CLAIM = { limit: 100, retries: 100, eventsPerLane: 100, again: false };

/** What a subscriber has not been handed yet, by conversation. */
async function undelivered(store: Store, subscriber: string): Promise<Record<string, string[]>> {
  const engine = await bootTestEngine(store);
  const context = engine.commandContext();
  const queue = `events/${subscriber}`;
  const { lanes } = await store.write('claimEvents', {
    context,
    subscriber,
    queue,
    token: context.commandId,
    ...CLAIM,
  });
  await engine.stop();
  return Object.fromEntries(lanes.map(({ key, events }) => [key, events.map(({ event }) => event.id)]).sort());
}

test.each(PAIRS)('a backup of %s restored into %s has what waits, under numbers that go on', async (from, to) => {
  const source = await newPlace(from);
  const store = await open(source.url);
  if (from === 'postgres') await useUpNumbers(source.url);
  const engine = await bootTestEngine(store);
  await store.write('subscribe', { name: 'late', patterns: ['session:*', 'agent:*'], from: 'now' });
  for (const n of [1, 2, 3]) await engine.receive(message(n, 'first words'));
  // The first conversation is half delivered, and one letter of it is dead.
  const context = engine.commandContext();
  const { lanes } = await store.write('claimEvents', {
    ...CLAIM,
    context,
    subscriber: 'late',
    queue: 'events/late',
    token: 't1',
    limit: 1,
    eventsPerLane: 1,
  });
  const [lane] = lanes;
  const [event] = lane?.events ?? [];
  if (lane === undefined || event === undefined) throw new Error('nothing was claimed');
  await store.write('failEvents', {
    context,
    subscriber: 'late',
    key: lane.key,
    token: 't1',
    delivered: { upTo: event.no - 1, replayed: [] },
    failed: { no: event.no, eventId: event.event.id, eventType: event.event.type, replay: false },
    error: 'refused',
    attempts: 8,
    waits: 0,
    retryInMs: 0,
    dead: true,
  });
  await store.read('lastSeq', {});
  for (const n of [3, 1]) await engine.receive(message(n, 'second words'));
  const seen = await store.read('listEvents', { after: 0, limit: 500, types: [], sessionId: null });
  await createBackup({ ...source, ...quiet, file: file(), replace: false });
  await engine.stop();
  const expected = await undelivered(store, 'late');

  const target = await newPlace(to);
  const result = await restoreBackup({ ...target, ...quiet, file: file(), suffix: '1' });
  expect(result).toEqual({ sessions: 3, takenAt: quiet.now, kept: null });
  const restored = await open(target.url);
  expect(await undelivered(restored, 'late')).toEqual(expected);
  expect(Object.keys(expected)).toHaveLength(3);
  const after = await restored.read('listEvents', { after: 0, limit: 500, types: [], sessionId: null });
  expect(after.events.map(({ event }) => event.id)).toEqual(seen.events.map(({ event }) => event.id));
  expect(after.events.map(({ seq }) => seq)).toEqual(seen.events.map(({ seq }) => seq));
  await restored.write('replay', { subscriber: 'late', fromSeq: null });
  expect((await undelivered(restored, 'late'))[lane.key]).toContain(event.event.id);
  // The turns that ran go on somewhere: their process is known to be dead.
  expect(await restored.read('listInstances', {})).toMatchObject([{ state: 'dead' }]);
  const next = await bootTestEngine(restored);
  expect((await next.reap()).interrupted).toHaveLength(3);
  await next.receive(message(9, 'afterwards'));
  const more = await restored.read('listEvents', { after: after.next, limit: 500, types: [], sessionId: null });
  expect(more.events.length).toBeGreaterThan(3);
  expect((await restored.read('checkPromises', { sample: 3 })).filter(({ broken }) => broken > 0)).toEqual([]);
  await next.stop();
});

test('a backup of an SQLite store is done in one pass, whatever is written meanwhile', async () => {
  const source = await newPlace('sqlite');
  const engine = await bootTestEngine(await open(source.url));
  const { id } = await engine.start(chatConversation('long'));
  // Some times as many pages as are copied at once.
  const long = { role: 'user', text: 'x'.repeat(16_000_000), turnId: null };
  await engine.appendBeside(id, [long, long]);
  const other = new DatabaseSync(source.place);
  const done: number[] = [];
  const progress = (pages: number): void => {
    if (pages <= (done.at(-1) ?? -1)) throw new RangeError(`page ${done.at(-1)}, then ${pages}`);
    done.push(pages);
    other.exec(`INSERT INTO meta (name, value) VALUES ('while-${pages}', '')`);
  };
  await createBackup({ ...source, ...quiet, progress, file: file(), replace: false });
  other.close();
  expect(done.length).toBeGreaterThan(1);
  await engine.stop();
});

test('a backup of a PostgreSQL store is of one moment, whatever is written meanwhile', async () => {
  const source = await newPlace('postgres');
  const engine = await bootTestEngine(await open(source.url));
  await engine.start(chatConversation('one'), { title: 'before' });
  const other = new pg.Client({ connectionString: source.url });
  await other.connect();
  await other.query('BEGIN');
  // The backup has begun, and stops here until something else has changed.
  await other.query('LOCK TABLE moirai.turns IN ACCESS EXCLUSIVE MODE');
  const backup = createBackup({ ...source, ...quiet, file: file(), replace: false });
  const waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'moirai.turns'::regclass";
  await vi.waitUntil(async () => (await other.query(waiting)).rows.length > 0, { timeout: 20_000 });
  await other.query("UPDATE moirai.sessions SET title = 'after'");
  await other.query('COMMIT');
  await other.end();
  await backup;
  const copy = new DatabaseSync(file());
  expect(copy.prepare('SELECT title FROM sessions').all()).toEqual([{ title: 'before' }]);
  copy.close();
  await engine.stop();
});

/** So that the public numbers of events are other ones than those that rows refer to. */
async function useUpNumbers(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("SELECT nextval('moirai.event_seq') FROM generate_series(1, 40)");
  await client.end();
}

function message(n: number, text: string) {
  return { conversation: chatConversation(n), text, originRef: null, by: 'user' } as const;
}
