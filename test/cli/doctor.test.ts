import { once } from 'node:events';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliFixture, chat, converse } from './cli-fixture.ts';

interface Check {
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
  readonly details?: unknown;
}

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

/** The report of a doctor, with its exit code. */
async function examine(
  ...flags: string[]
): Promise<{ code: number | null; ok: boolean; checks: Check[]; done: string[] }> {
  const { code, output } = await cli.moirai('doctor', '--json', ...flags);
  return { code, ...JSON.parse(output) };
}

function statusOf(checks: readonly Check[], name: string): string | undefined {
  return checks.find(({ check }) => check === name)?.status;
}

function tamper(sql: string): void {
  const db = new DatabaseSync(join(cli.home, 'state.db'));
  db.exec(sql);
  db.close();
}

/** Overwrites the entries at the end of an index's first page, as a failing disk would. */
function damage(index: string): void {
  const file = join(cli.home, 'state.db');
  const db = new DatabaseSync(file);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const root = Number(db.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').get(index)?.rootpage);
  const size = Number(db.prepare('PRAGMA page_size').get()?.page_size);
  db.close();
  const bytes = readFileSync(file);
  bytes.fill('x', root * size - 100, root * size);
  writeFileSync(file, bytes);
}

describe('a doctor', () => {
  test('finds nothing wrong with a healthy home', async () => {
    await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    await cli.moirai('run', '--', 'true');
    const { code, ok, checks, done } = await examine();
    expect({ code, ok, done }).toEqual({ code: 0, ok: true, done: [] });
    expect(checks.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(checks.map(({ check }) => check)).toEqual([
      ...['node', 'home', 'store', 'settings', 'integrity'],
      ...['starts_once', 'ends_once', 'open_has_no_end', 'numbers_match_the_row', 'numbers_have_no_gap'].map(
        (name) => `promise:${name}`,
      ),
      ...['promise:end_comes_last', 'promise:removed_has_ended', 'owners', 'deadlines', 'instances', 'subscribers'],
      'backup',
    ]);
    const { output } = await cli.moirai('doctor');
    expect(output).toMatch(/^ok {4}node: Node\.js 24\./);
    expect(output).toMatch(/All is well\.\n$/);
  });

  test('tells of a configured sandbox whether it works, and of one that is off nothing', async () => {
    expect(statusOf((await examine()).checks, 'sandbox')).toBeUndefined();
    writeFileSync(join(cli.home, 'config.yaml'), 'agent: { sandbox: bubblewrap }');
    expect(statusOf((await examine()).checks, 'sandbox')).toMatch(/^(ok|fail)$/);
  });

  test('warns of a home that is open to others', async () => {
    chmodSync(cli.home, 0o755);
    const { code, checks } = await examine();
    expect({ code, home: statusOf(checks, 'home') }).toEqual({ code: 0, home: 'warn' });
    expect((await cli.moirai('doctor')).output).toContain(`chmod 700 ${cli.home}`);
  });

  test.each([
    ['ends_once', "DELETE FROM events WHERE type = 'session:end'"],
    ['starts_once', "DELETE FROM events WHERE type = 'session:start'"],
    ['numbers_match_the_row', 'UPDATE sessions SET seq = seq + 1'],
    ['numbers_have_no_gap', 'DELETE FROM events WHERE session_seq = 2'],
    ['removed_has_ended', "DELETE FROM sessions WHERE state = 'open'"],
    ['open_has_no_end', "UPDATE events SET type = 'session:end' WHERE type = 'agent:start'"],
  ])('sees that %s was broken', async (promise, sql) => {
    await cli.live(async (engine) => {
      await converse(engine, chat(1), 'a', 'b');
      const id = await converse(engine, chat(2), 'a', 'b');
      if (promise !== 'open_has_no_end') await engine.end(id, { reason: 'admin_close', trigger: 'cli' });
    });
    tamper(sql);
    const { code, ok, checks } = await examine();
    expect({ code, ok, found: statusOf(checks, `promise:${promise}`) }).toEqual({ code: 1, ok: false, found: 'fail' });
    expect((await cli.moirai('doctor')).output).toMatch(/^fail {2}promise:/m);
  });

  test('sees that the file is damaged', async () => {
    await cli.live(async (engine) => {
      for (let n = 0; n < 50; n++) await converse(engine, chat(n), 'a', 'b');
    });
    damage('sessions_by_key');
    const { code, ok, checks } = await examine();
    expect({ code, ok, integrity: statusOf(checks, 'integrity') }).toEqual({ code: 1, ok: false, integrity: 'fail' });
  });

  test('tells of instances and subscribers', async () => {
    await cli.live(async (engine) => {
      await engine.store.write('subscribe', { name: 'audit', patterns: ['session:*'], from: 'now' });
      await converse(engine, chat(1), 'a', 'b');
      const { checks } = await examine();
      expect(checks.find(({ check }) => check === 'instances')?.details).toMatchObject([
        { id: engine.instance, state: 'up', pid: process.pid },
      ]);
      expect(checks.find(({ check }) => check === 'subscriber:audit')).toMatchObject({
        status: 'ok',
        details: { name: 'audit', patterns: ['session:*'], lag: expect.any(Number), failures: 0, dead_letters: 0 },
      });
    });
  });

  test('reports a store that does not open, and exits with 1', async () => {
    const { code, checks } = await examine('--store', 'postgres://nobody@127.0.0.1:1/none');
    expect({ code, store: statusOf(checks, 'store') }).toEqual({ code: 1, store: 'fail' });
  });
});

describe('doctor --fix', () => {
  test('ends what is overdue and says so', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    tamper('UPDATE sessions SET expires_at = 1, check_at = 1');
    expect(statusOf((await examine()).checks, 'deadlines')).toBe('warn');
    const { code, done, checks } = await examine('--fix');
    expect({ code, done }).toEqual({ code: 0, done: [`1 overdue sessions ended: ${id}`] });
    expect(statusOf(checks, 'deadlines')).toBe('ok');
    expect(await cli.json('sessions', 'show', id)).toMatchObject({ end_reason: 'idle_expiry' });
    expect((await examine('--fix')).done).toEqual([]);
  });

  test('settles what dead processes left, and says what', async () => {
    const { wrapper } = await cli.startRun('exec sleep 600');
    const gone = once(wrapper, 'exit');
    wrapper.kill('SIGKILL');
    await gone;
    const { code, done, checks } = await examine('--fix');
    expect({ code, owners: statusOf(checks, 'owners') }).toEqual({ code: 0, owners: 'ok' });
    expect(done).toEqual([
      expect.stringMatching(/^1 instances found dead: ins_/),
      expect.stringMatching(/^1 sessions ended as reaped: ses_/),
    ]);
  });

  test('also finds a session whose owner has no row at all', async () => {
    const { wrapper } = await cli.startRun('exec sleep 600');
    cli.pause(wrapper.pid ?? 0); // It lives, but nobody knows of it.
    tamper('DELETE FROM instances');
    expect(statusOf((await examine()).checks, 'owners')).toBe('fail');
    const { code, done } = await examine('--fix');
    expect({ code, done }).toEqual({ code: 0, done: [expect.stringMatching(/^1 sessions ended as reaped: ses_/)] });
  });
});

test('a doctor leaves the permissions of the home as they are', async () => {
  chmodSync(cli.home, 0o750);
  await examine('--fix');
  expect(statSync(cli.home).mode & 0o777).toBe(0o750);
});
