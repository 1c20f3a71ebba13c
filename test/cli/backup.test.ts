import { chmodSync, existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliFixture, chat, converse } from './cli-fixture.ts';

let cli: CliFixture;
const file = () => join(cli.home, 'kept.db');
const state = () => join(cli.home, 'state.db');

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

function change(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

/** All rows of the tables that matter here. */
function contents(path: string): unknown {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return ['sessions', 'messages', 'events'].map((table) => db.prepare(`SELECT * FROM ${table} ORDER BY 1`).all());
  } finally {
    db.close();
  }
}

describe('restore', () => {
  beforeEach(async () => {
    await cli.live((engine) => converse(engine, chat(1), 'before', 'yes'));
    expect(await cli.moirai('backup', file())).toMatchObject({ code: 0, errors: '' });
  });

  test('keeps the store aside that it replaces, and names it', async () => {
    await cli.live((engine) => converse(engine, chat(2), 'afterwards', 'yes'));
    const refused = await cli.moirai('restore', file());
    expect(refused).toMatchObject({ code: 1, errors: expect.stringContaining('[store_not_empty]') });
    const { kept, sessions } = JSON.parse((await cli.moirai('restore', file(), '--force', '--json')).output);
    expect(sessions).toBe(1);
    expect((await cli.json('sessions', 'list')).data).toHaveLength(1);
    expect(statSync(state()).mode & 0o777).toBe(0o600);
    // What was kept aside is a store, and can be restored in its turn.
    expect(await cli.moirai('restore', kept, '--force')).toMatchObject({ code: 0 });
    expect((await cli.json('sessions', 'list')).data).toHaveLength(2);
  });

  test('puts a backup in the place of a store that cannot be opened any more', async () => {
    writeFileSync(state(), 'nothing that could be read'.repeat(1000));
    expect(await cli.moirai('restore', file())).toMatchObject({ code: 1 });
    expect(await cli.moirai('restore', file(), '--force')).toMatchObject({ code: 0 });
    expect((await cli.json('sessions', 'list')).data).toHaveLength(1);
    expect(readdirSync(cli.home).filter((name) => name.includes('before-restore'))).toHaveLength(1);
  });

  test.each<[name: string, spoil: () => void, code: string]>([
    ['a file that is no database', () => writeFileSync(file(), 'x'.repeat(20_000)), 'backup_invalid'],
    ['an empty file', () => writeFileSync(file(), ''), 'backup_invalid'],
    ['a file that ends early', () => truncateSync(file(), statSync(file()).size / 2), 'backup_invalid'],
    ['a damaged page', () => damage(file()), 'backup_invalid'],
    ["another program's database", () => change(file(), 'PRAGMA application_id = 7'), 'backup_invalid'],
    ['a newer schema', () => change(file(), "UPDATE meta SET value = '999' WHERE name = 'schema'"), 'store_newer'],
  ])('refuses %s and leaves everything as it was', async (_, spoil, code) => {
    await cli.live((engine) => converse(engine, chat(2), 'afterwards', 'yes'));
    const before = contents(state());
    spoil();
    const names = readdirSync(cli.home).sort();
    const { code: exit, errors } = await cli.moirai('restore', file(), '--force', '--json');
    expect({ exit, error: JSON.parse(errors).error.code }).toEqual({ exit: 1, error: code });
    expect(contents(state())).toEqual(before);
    expect(readdirSync(cli.home).filter((name) => !names.includes(name))).toEqual([]);
  });

  test('is refused while another process takes part in the store', async () => {
    await cli.live(async () => {
      const { errors } = await cli.moirai('restore', file(), '--force');
      expect(errors).toMatch(new RegExp(`process ${process.pid} .*\\[store_in_use\\]`));
    });
  });
});

/** Overwrites the middle of a file, as a failing disk would. */
function damage(path: string): void {
  const bytes = readFileSync(path);
  for (let at = 4096; at < bytes.length; at += 4096) bytes.fill(0xff, at, at + 64);
  writeFileSync(path, bytes);
}

test('backup does not replace a file unasked, never the store itself, and leaves nothing behind when it fails', async () => {
  await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
  expect(await cli.moirai('backup', file())).toMatchObject({ code: 0 });
  const first = readFileSync(file());
  expect((await cli.moirai('backup', file())).errors).toContain('[backup_exists]');
  expect(readFileSync(file())).toEqual(first);
  chmodSync(file(), 0o644);
  expect(await cli.moirai('backup', file(), '--force')).toMatchObject({ code: 0 });
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect((await cli.moirai('backup', state(), '--force')).errors).toContain('is the store itself');
  expect((await cli.moirai('backup', join(file(), 'below'))).code).toBe(1);
  expect(readdirSync(cli.home).filter((name) => name.endsWith('.part'))).toEqual([]);
  expect(existsSync(file())).toBe(true);
});

test('doctor names the last backup, and warns when there is none of a week of sessions, or an old one', async () => {
  const found = async (): Promise<{ status: string; message: string }> => {
    const { checks } = await cli.json('doctor');
    return checks.find(({ check }: { check: string }) => check === 'backup');
  };
  await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
  expect(await found()).toMatchObject({ status: 'ok', message: 'there is none yet' });
  change(state(), 'UPDATE sessions SET started_at = started_at - 864000000');
  expect(await found()).toMatchObject({ status: 'warn', message: 'there is none yet' });
  await cli.moirai('backup', file());
  const { size } = statSync(file());
  expect(await found()).toMatchObject({ status: 'ok', details: { file: file(), bytes: size } });
  change(state(), "UPDATE meta SET value = json_set(value, '$.at', 1000) WHERE name = 'backup'");
  expect(await found()).toMatchObject({ status: 'warn', message: expect.stringContaining('1970-01-01') });
});
