import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { CliFixture, chat, converse, finish, isRunning, until } from './cli-fixture.ts';

let cli: CliFixture;
let database: TestDatabase;

beforeEach(async () => {
  database = await createDatabase();
  cli = new CliFixture(database.url);
});

afterEach(async () => {
  cli.remove();
  await database.drop();
});

test('commands run as sessions, are listed, counted and found sound', async () => {
  expect(await cli.feed('in', 'run', '--', 'cat')).toMatchObject({ code: 0, output: 'in', errors: '' });
  expect(await cli.moirai('run', '--', 'sh', '-c', 'exit 3')).toMatchObject({ code: 3 });
  const { data } = await cli.json('sessions', 'list', '--kind', 'batch');
  expect(data).toMatchObject([
    { title: "sh -c 'exit 3'", end_reason: 'batch_failed', end_cause: 'exit' },
    { title: 'cat', end_reason: 'batch_complete' },
  ]);
  expect(await cli.json('sessions', 'stats')).toEqual({
    ...{ total: 2, open: 0, open_owned: 0, open_unowned: 0 },
    ended: { batch_complete: 1, batch_failed: 1 },
  });
  const { ok, checks } = await cli.json('doctor');
  expect(checks.filter(({ status }: { status: string }) => status === 'fail')).toEqual([]);
  expect(ok).toBe(true);
});

test('sessions are shown, searched and ended, and the log has it all', async () => {
  const id = await cli.live((engine) => converse(engine, chat(1), 'where is the bridge', 'in the north'));
  expect(await cli.json('sessions', 'show', id)).toMatchObject({ id, state: 'open' });
  expect((await cli.moirai('sessions', 'show', id)).output).toContain('session:start');
  expect(await cli.json('sessions', 'search', 'bridge')).toMatchObject({ data: [{ session_id: id }] });
  expect((await cli.json('sessions', 'messages', id)).data).toHaveLength(2);
  expect(await cli.json('sessions', 'end', id)).toMatchObject({ id, end_reason: 'admin_close' });
  expect((await cli.events('--session', id)).map(({ type }) => type)).toEqual([
    ...['session:start', 'agent:start', 'agent:end', 'session:end'],
  ]);
});

test('a killed wrapper takes its command along, and is reaped by the next command', async () => {
  const bystander = await cli.startRun('read _; exit 0');
  const { wrapper, pid } = await cli.startRun('exec sleep 600');
  wrapper.kill('SIGKILL');
  await until('the command is gone', () => !isRunning(pid), 2000);
  // Its pipe is closed before it is quite gone itself.
  await until('the wrapper is gone', () => !isRunning(wrapper.pid ?? 0), 2000);
  expect(await cli.json('sessions', 'stats')).toMatchObject({
    open: 1,
    open_owned: 1,
    open_unowned: 0,
    ended: { reaped: 1 },
  });
  bystander.wrapper.stdin.end('\n');
  expect(await finish(bystander.wrapper)).toMatchObject({ code: 0 });
  expect(await cli.json('sessions', 'stats')).toMatchObject({ open: 0, ended: { batch_complete: 1, reaped: 1 } });
});

test('a gateway runs in the background, and what it leaves can be removed', async () => {
  writeFileSync(join(cli.home, 'config.yaml'), 'gateway: { port: 0 }\n');
  const { url, pid } = await cli.json('gateway', 'start');
  try {
    const body = JSON.stringify({ text: 'hello' });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${url}/v1/chat`, { method: 'POST', headers, body });
    expect(await answer.json()).toMatchObject({ outcome: 'done' });
    expect(await cli.json('gateway', 'status')).toMatchObject({ state: 'ready', pid });
    await cli.json('gateway', 'stop');
  } finally {
    if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  }
  expect(await cli.json('sessions', 'prune', '--older-than', '0s')).toMatchObject({ by_kind: { api: 1 } });
  expect(await cli.json('doctor')).toMatchObject({ ok: true });
});

test('ten at the same time all end properly', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, (_, n) => cli.moirai('run', '--', 'sh', '-c', `exit ${n}`)),
  );
  expect(outcomes.map(({ code, errors }) => [code, errors])).toEqual(outcomes.map((_, n) => [n, '']));
  expect(await cli.json('sessions', 'stats')).toMatchObject({
    open: 0,
    ended: { batch_complete: 1, batch_failed: 9 },
  });
});

test('when the store is away at the end, it is waited for, and the exit code is passed on all the same', async () => {
  const { wrapper } = await cli.startRun('read _; exit 5');
  let errors = '';
  wrapper.stderr.on('data', (bytes) => {
    errors += bytes;
  });
  const exit = once(wrapper, 'exit');
  await database.drop();
  wrapper.stdin.end('\n');
  await until('it tries', () => errors.includes('trying for a minute'), 20_000);
  wrapper.kill('SIGINT');
  expect((await exit)[0]).toBe(5);
  expect(errors).toContain('could not be written');
});
