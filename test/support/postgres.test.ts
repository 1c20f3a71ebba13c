import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test, vi } from 'vitest';
import { createDatabase, startPostgres } from './postgres.ts';

test('every database is empty and apart from the others', async () => {
  const [one, other] = await Promise.all([createDatabase(), createDatabase()]);
  await query(one.url, 'create table thread (id int)');
  expect(await query(one.url, 'select * from thread')).toEqual([]);
  await expect(query(other.url, 'select * from thread')).rejects.toThrow('does not exist');
  await Promise.all([one.drop(), other.drop()]);
  await expect(query(one.url, 'select 1')).rejects.toThrow('does not exist');
});

test('the server is durable and keeps what it acknowledged when it is killed', async () => {
  const server = await startPostgres();
  try {
    expect(await query(server.url, 'show fsync')).toEqual([{ fsync: 'on' }]);
    expect(await query(server.url, 'show synchronous_commit')).toEqual([{ synchronous_commit: 'on' }]);
    expect(await query(server.url, 'show full_page_writes')).toEqual([{ full_page_writes: 'on' }]);
    await query(server.url, 'create table thread (id int); insert into thread values (1)');
    const { pid } = server;
    await server.crash();
    expect(server.pid).not.toBe(pid);
    expect(isAlive(pid)).toBe(false);
    expect(await query(server.url, 'select * from thread')).toEqual([{ id: 1 }]);
  } finally {
    await server.stop();
  }
  expect(isAlive(server.pid)).toBe(false);
});

test('the server and its files go when the process that started it is killed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'moirai-test-'));
  await chmod(folder, 0o1777); // another user may own the server's files
  const script = `
    const { startPostgres } = await import(process.argv[1]);
    console.log((await startPostgres()).pid);
    setInterval(() => {}, 1000);
  `;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script, import.meta.resolve('./postgres.ts')], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(starter.stdout, 'data');
  const pid = Number(line);
  expect(isAlive(pid)).toBe(true);
  starter.kill('SIGKILL');
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), 10_000);
  await vi.waitFor(async () => expect(await readdir(folder)).toEqual([]), 10_000);
  await rm(folder, { recursive: true });
});

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // ESRCH
  }
}
