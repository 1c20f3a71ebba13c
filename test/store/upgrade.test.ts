import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import type { Dialect } from '../../src/store/dialect.ts';
import { statements as sessions } from '../../src/store/migrations/0001-sessions.ts';
import { statements as deletion } from '../../src/store/migrations/0002-deletion.ts';
import { statements as facts } from '../../src/store/migrations/0003-facts.ts';
import { statements as platforms } from '../../src/store/migrations/0004-platforms.ts';
import { statements as jobs } from '../../src/store/migrations/0005-jobs.ts';
import { statements as timeline } from '../../src/store/migrations/0006-timeline.ts';
import type { Store } from '../../src/store/port.ts';
import { postgresDialect } from '../../src/store/postgres/dialect.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { sqliteDialect } from '../../src/store/sqlite/dialect.ts';
import { InlineSqliteStore } from '../../src/store/sqlite/store.ts';
import { createDatabase } from '../support/postgres.ts';
import { fakeClock } from './contract/scene.ts';

const KEY = 'agent:main:telegram:dm:42';
const clock = fakeClock('2026-11-01T12:00:00.000Z');
const NOW = clock.now();
const removals: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const remove of removals.splice(0)) await remove();
});

/** A store as the release before the queue left it, in the middle of its work. */
function oldStore(dialect: Dialect): string[] {
  const steps = [sessions, deletion, facts, platforms, jobs, timeline];
  const q = (text: string | null): string => (text === null ? 'NULL' : `'${text}'`);
  const instance = `'ins_old', NULL, '0.1.0', 'here', NULL, NULL, 1, NULL, 'up', ${NOW}, ${NOW}, ${NOW - 1}`;
  const columns = 'id, key, kind, platform, user_id, origin, attached, started_at, state, last_activity_at';
  const counters = 'message_count, tokens_in, tokens_out, epoch, cuts, background, seq, version, recent_commands';
  const delivery = (id: string, state: string, at: number, due: string): string =>
    `INSERT INTO deliveries (id, session_id, turn_id, platform, target, text, state, attempts, possible_duplicate, due_at,
       claimed_by, created_at) VALUES (${q(id)}, 'ses_1', NULL, 'telegram', '{"chat":"42"}', ${q(`text of ${id}`)},
       ${q(state)}, 1, 0, ${due}, ${state === 'sending' ? "'ins_old'" : 'NULL'}, ${at})`;
  return [
    `CREATE TABLE meta (name ${dialect.text} PRIMARY KEY, value ${dialect.text} NOT NULL)`,
    ...steps.flatMap((step) => step(dialect)),
    "INSERT INTO meta (name, value) VALUES ('schema', '6')",
    `INSERT INTO instances VALUES (${instance}, NULL)`,
    `INSERT INTO sessions (${columns}, ${counters}) VALUES ('ses_1', '${KEY}', 'chat', 'telegram', 'ada', NULL, 0, ${NOW},
       'open', ${NOW}, 0, 0, 0, 0, 0, 0, 1, 1, '')`,
    `INSERT INTO events (session_id, session_seq, session_key, type, at, body) VALUES ('ses_1', 1, '${KEY}',
       'session:start', ${NOW}, '{"id":"ses_1:1","type":"session:start","session_seq":1,"session_key":"${KEY}"}')`,
    `INSERT INTO subscribers VALUES ('hook:diary', '["*"]', ${NOW})`,
    `INSERT INTO lanes (subscriber, session_key, next_no, last_no, due_at, attempts, waits, token, claimed_by, claimed_until)
       SELECT 'hook:diary', '${KEY}', min(no), max(no), 0, 2, 0, 'token', 'ins_old', ${NOW + 1000} FROM events`,
    delivery('dlv_sent', 'sent', NOW - 3, 'NULL'),
    delivery('dlv_2', 'sending', NOW - 2, 'NULL'),
    delivery('dlv_3', 'queued', NOW - 1, String(NOW)),
    `INSERT INTO jobs (id, name, schedule, timezone, prompt, target, created_at, paused_at, next_at) VALUES
       ('job_1', 'tea', 'every 1h', 'UTC', 'make tea', '{"to":"home"}', ${NOW}, NULL, ${NOW}),
       ('job_2', 'off', 'every 1h', 'UTC', 'nothing', '{"to":"home"}', ${NOW}, ${NOW}, NULL)`,
  ];
}

async function openSqlite(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'moirai-upgrade-'));
  const path = join(folder, 'state.db');
  const db = new DatabaseSync(path);
  db.exec('PRAGMA application_id = 0x4d4f4952');
  for (const sql of oldStore(sqliteDialect)) db.exec(sql);
  db.close();
  removals.push(() => rmSync(folder, { recursive: true }));
  return new InlineSqliteStore(path, clock, DEFAULT_RESET_RULES);
}

async function openPostgres(): Promise<Store> {
  const database = await createDatabase();
  removals.push(() => database.drop());
  const client = new pg.Client({ connectionString: database.url, options: '-c search_path=moirai' });
  await client.connect();
  await client.query('CREATE SCHEMA moirai');
  for (const sql of oldStore(postgresDialect)) await client.query(sql);
  await client.end();
  return PostgresStore.open(database.url, DEFAULT_RESET_RULES, { clock });
}

describe.each([
  ['SQLite', openSqlite],
  ['PostgreSQL', openPostgres],
])('a store of the last release on %s', (_, open) => {
  test('goes on with its events, its replies and its jobs', async () => {
    const store = await open();
    const facts = { name: null, version: '1', host: 'here', bootId: null, pidSpace: null, pid: 2, pidStarted: null };
    await store.write('bootInstance', { facts: { id: 'ins_new', ...facts }, ttlMs: 60_000 });
    const claim = (token: string) => {
      const context = { instanceId: 'ins_new', commandId: token };
      return { context, token, again: false, limit: 9, retries: 9 };
    };
    const subscriber = 'hook:diary';
    const queue = `events/${subscriber}`;
    const events = await store.write('claimEvents', { ...claim('a'), queue, subscriber, eventsPerLane: 9 });
    expect(events.lanes).toMatchObject([{ key: KEY, attempts: 2, events: [{ event: { id: 'ses_1:1' } }] }]);
    const replies = await store.write('claimReplies', { ...claim('b'), platform: 'telegram', repliesPerLane: 9 });
    expect(replies.lanes).toMatchObject([
      { key: KEY, interrupted: true, deliveries: [{ id: 'dlv_2' }, { id: 'dlv_3', target: { chat: '42' } }] },
    ]);
    const ticks = await store.write('claimTicks', { ...claim('c'), queue: 'ticks' });
    expect(ticks.lanes).toMatchObject([{ key: 'job_1', tickAt: NOW, job: { name: 'tea', prompt: 'make tea' } }]);
    expect(await store.read('listJobs', { madeIn: null })).toMatchObject([
      { id: 'job_1', nextAt: NOW },
      { id: 'job_2', nextAt: null, pausedAt: NOW },
    ]);
    await store.close();
  });
});
