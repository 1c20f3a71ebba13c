import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliFixture, finish } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

test('the version is told, and needs no home', async () => {
  const home = join(cli.home, 'untouched');
  const { code, output } = await cli.moirai('--home', home, 'version');
  expect({ code, output }).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^moirai \d+\.\d+\.\d+ \(Node\.js /),
  });
  expect(await cli.json('--home', home, 'version')).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    node: process.versions.node,
    sqlite: process.versions.sqlite,
    schema: expect.any(Number),
  });
  expect(existsSync(home)).toBe(false);
});

test('the home is made on first use, for its owner only, with the store in it', async () => {
  const home = join(cli.home, 'a', 'b');
  expect(await cli.moirai('--home', home, 'sessions', 'stats')).toMatchObject({ code: 0 });
  expect(statSync(home).mode & 0o777).toBe(0o700);
  expect(existsSync(join(home, 'state.db'))).toBe(true);
});

test('a home that cannot be made is bad configuration', async () => {
  writeFileSync(join(cli.home, 'file'), '');
  for (const home of [join(cli.home, 'file/home'), '/proc/moirai']) {
    const { code, errors } = await cli.moirai('--home', home, 'sessions', 'stats');
    expect({ code, errors }).toMatchObject({ code: 78, errors: expect.stringContaining('[home_unusable]') });
  }
});

describe('help', () => {
  test.each([
    [['-h'], 'Usage: moirai [options] [command]'],
    [['help'], 'Usage: moirai [options] [command]'],
    [['sessions', '-h'], 'Usage: moirai sessions [options] [command]'],
    [['sessions', 'list', '-h'], '--reason <reasons>'],
    [['help', 'sessions', 'list'], '--reason <reasons>'],
    [['sessions', 'show', '--help'], 'Usage: moirai sessions show [options] <id>'],
    [['sessions', 'messages', '-h'], '--cursor <cursor>'],
    [['sessions', 'search', '-h'], '<text...>'],
    [['sessions', 'end', '-h'], '--reason <reason>'],
    [['sessions', 'stats', '-h'], 'open without a live owner'],
    [['sessions', 'resume', '-h'], 'An ended session never reopens.'],
    [['sessions', 'branch', '-h'], '--title <title>'],
    [['sessions', 'title', '-h'], '<text...>'],
    [['sessions', 'export', '-h'], '--format <format>'],
    [['sessions', 'prune', '-h'], '--dry-run'],
    [['sessions', 'delete', '-h'], 'Its events stay in the log.'],
    [['gateway', '-h'], 'Usage: moirai gateway [options] [command]'],
    [['gateway', 'run', '-h'], '--supervised'],
    [['gateway', 'start', '-h'], 'logs/gateway.log'],
    [['gateway', 'stop', '-h'], '--now'],
    [['gateway', 'restart', '-h'], '--now'],
    [['gateway', 'status', '-h'], '3 it does not'],
    [['gateway', 'drain', '-h'], 'moirai gateway undrain'],
    [['gateway', 'undrain', '-h'], 'take messages again'],
    [['gateway', 'install', '-h'], '--print'],
    [['gateway', 'uninstall', '-h'], '--name <name>'],
    [['events', '-h'], '--follow'],
    [['run', '-h'], 'moirai run -- make -j4 test'],
    [['doctor', '-h'], '--fix'],
    [['version', '-h'], 'Usage: moirai version'],
  ])('is shown for %j', async (args, expected) => {
    const { code, output, errors } = await cli.moirai(...args);
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(output).toContain(expected);
    expect(output).toContain('--home <dir>');
  });

  test('is shown on standard error when a command is missing, and that is a mistake', async () => {
    for (const args of [[], ['sessions']]) {
      const { code, output, errors } = await cli.moirai(...args);
      expect({ code, output }).toEqual({ code: 2, output: '' });
      expect(errors).toContain('Usage: moirai');
      expect(errors).toContain('error: a command is missing [usage]\n');
    }
  });
});

describe('a line that cannot be understood exits with 2', () => {
  test.each([
    [['sesions'], "unknown command 'sesions' (Did you mean sessions?) [usage]"],
    [['sessions', 'lst'], "unknown command 'lst' (Did you mean list?) [usage]"],
    [['sessions', 'list', '--jsn'], "unknown option '--jsn' (Did you mean --json?) [usage]"],
    [['sessions', 'list', 'more'], "too many arguments for 'list'"],
    [['sessions', 'show'], "missing required argument 'id' [usage]"],
    [['run'], "missing required argument 'command' [usage]"],
    [['sessions', 'list', '--kind', 'chatt'], 'did you mean "chat"?'],
    [['sessions', 'list', '--state', 'opn'], 'did you mean "open"?'],
    [['sessions', 'list', '--reason', 'idle'], 'did you mean "'],
    [['sessions', 'list', '--limit', '0'], '--limit is a whole number from 1 to 500, not "0" [bad_input]'],
    [['sessions', 'list', '--limit', '501'], '--limit is a whole number'],
    [['sessions', 'list', '--limit', '1e2'], '--limit is a whole number'],
    [['sessions', 'list', '--since', 'yesterday'], '--since is a time such as'],
    [['sessions', 'list', '--cursor', 'x'], '"x" is not a cursor of this listing [bad_input]'],
    [['sessions', 'search', '***'], 'the search text has no word in it [bad_input]'],
    [['sessions', 'end', 'x', '--reason', 'reaped'], 'use api_close or admin_close [bad_reason]'],
    [['events', '--types', 'session:ended'], 'did you mean "session:end"? [unknown_event]'],
    [['events', '--after', '-1'], '--after is a whole number'],
  ])('%j', async (args, expected) => {
    const { code, output, errors } = await cli.moirai(...args);
    expect({ code, output }).toEqual({ code: 2, output: '' });
    expect(errors).toContain(expected);
    expect(errors).toMatch(/^error: .+ \[\w+\]\n {2}[A-Z].+\.\n$/);
  });
});

describe('an error', () => {
  test('is an object on standard error with --json, wherever that stands', async () => {
    for (const args of [
      ['--json', 'sessions', 'show', 'ses_x'],
      ['sessions', 'show', 'ses_x', '--json'],
    ]) {
      const { code, output, errors } = await cli.moirai(...args);
      expect({ code, output }).toEqual({ code: 1, output: '' });
      expect(JSON.parse(errors)).toEqual({
        error: {
          code: 'session_not_found',
          message: 'no session "ses_x"',
          hint: expect.stringContaining('List sessions'),
        },
      });
    }
    const usage = await cli.moirai('sessions', 'list', '--jsn', '--json');
    expect(JSON.parse(usage.errors)).toMatchObject({ error: { code: 'usage' } });
  });

  test('shows its stack only when asked to', async () => {
    const plain = await cli.moirai('sessions', 'show', 'ses_x');
    expect(plain.errors).not.toContain('    at ');
    const child = cli.start(['sessions', 'show', 'ses_x'], { env: { MOIRAI_DEBUG: '1' } });
    expect((await finish(child)).errors).toContain('    at ');
  });

  test('shows hostile arguments as text', async () => {
    const { errors } = await cli.moirai('sessions', 'show', '\u001b[31mred\u202e\nforged line');
    expect(errors).toContain('no session "\\x1b[31mred\\u{202e}\\nforged line" [session_not_found]\n');
  });
});

describe('a store', () => {
  test.each([['foo:bar'], ['sqlite:'], ['mysql://user:secret@host/db'], ['postgres://user:secret@[bad/db']])(
    'that %s names is bad configuration, and no password is shown',
    async (url) => {
      const { code, errors } = await cli.moirai('--store', url, 'sessions', 'list');
      expect({ code, errors }).toMatchObject({ code: 78, errors: expect.stringContaining('[store_url]') });
      expect(errors).not.toContain('secret');
    },
  );

  test('that is a text file is refused and left alone', async () => {
    const file = join(cli.home, 'state.db');
    writeFileSync(file, 'dear diary');
    for (const args of [['sessions', 'list'], ['doctor'], ['run', '--', 'true']]) {
      const { code, output, errors } = await cli.moirai(...args);
      expect(code).toBe(1);
      expect(output + errors).toContain('[store_not_database]');
    }
    expect(statSync(file).size).toBe(10);
  });

  test('that a newer version wrote is refused', async () => {
    await cli.moirai('sessions', 'stats');
    const db = new DatabaseSync(join(cli.home, 'state.db'));
    db.exec("UPDATE meta SET value = '999' WHERE name = 'schema'");
    db.close();
    expect(await cli.moirai('sessions', 'stats')).toMatchObject({
      code: 1,
      errors: expect.stringContaining('[store_newer]'),
    });
  });

  test('that does not answer is a failure', async () => {
    const { code, errors } = await cli.moirai('--store', 'postgres://u:secret@127.0.0.1:1/db', 'sessions', 'list');
    expect({ code, errors }).toMatchObject({ code: 1, errors: expect.stringContaining('[store_unreachable]') });
    expect(errors).not.toContain('secret');
  });

  test('may be elsewhere', async () => {
    mkdirSync(join(cli.home, 'other'));
    const file = join(cli.home, 'other/file.db');
    expect(await cli.moirai('--store', `sqlite:${file}`, 'sessions', 'stats')).toMatchObject({ code: 0 });
    expect(existsSync(file)).toBe(true);
  });
});
