import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { pathShown, settingAt, WRONG_SETTINGS } from '../support/wrong-settings.ts';
import { CliFixture, chat, converse, finish } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

function write(file: 'config.yaml' | '.env', content: string | object): void {
  writeFileSync(join(cli.home, file), typeof content === 'string' ? content : stringify(content));
}

/** What `config check --json` prints, and how it exits. */
async function check(): Promise<{ code: number | null; problems: { path: string; nearest: string | null }[] }> {
  const { code, output } = await cli.moirai('config', 'check', '--json');
  return { code, problems: JSON.parse(output).problems };
}

describe('config check', () => {
  test('says what is in force', async () => {
    write('config.yaml', 'gateway: { port: 9000 }\nstore: { url: "postgres://u:hidden@host/db" }\n');
    write('.env', 'TELEGRAM_BOT_TOKEN=1:hidden\n');
    const { code, output, errors } = await cli.moirai('config', 'check');
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(output).toContain('postgres://u:***@host/db');
    expect(output).toMatch(/^gateway +127\.0\.0\.1, port 9000, without a key$/m);
    expect(output).toMatch(/^platforms +telegram, (?:.+, )?web$/m);
    expect(output).toMatch(/The configuration is valid\.\n$/);
    expect(output).not.toContain('hidden');
  });

  test('is content with nothing, and makes nothing', async () => {
    const home = join(cli.home, 'none');
    const { config, env } = await cli.json('--home', home, 'config', 'path');
    expect(await cli.json('--home', home, 'config', 'check')).toEqual({
      ok: true,
      config,
      env,
      problems: [],
      notes: [],
    });
    expect(existsSync(home)).toBe(false);
  });

  test('names each platform, and each account of one, that is configured and lacks its credential', async () => {
    const notServed = async (telegram: object) => {
      write('config.yaml', JSON.stringify({ platforms: { telegram } }));
      return (await cli.json('config', 'check')).not_served;
    };
    expect(await notServed({ allow: [7] })).toEqual(['telegram']);
    expect(await notServed({ allow: [7], accounts: { a: { token: '1:a' }, b: {} } })).toEqual(['telegram@b']);
    expect(await notServed({ allow: [7], enabled: false })).toBeUndefined();
    write('config.yaml', JSON.stringify({ platforms: { telegram: { accounts: { b: {} } } } }));
    const { output } = await cli.moirai('config', 'check');
    expect(output).toMatch(/^telegram@b +configured without token, so it is off$/m);
  });

  test('names a platform that has a part of what it needs, also beside accounts that have all', async () => {
    const work = { token: 'xoxb-2', app_token: 'xapp-2' };
    write('config.yaml', JSON.stringify({ platforms: { slack: { token: 'xoxb-1', accounts: { work } } } }));
    expect(await cli.json('config', 'check')).toMatchObject({ not_served: ['slack'] });
    write('config.yaml', JSON.stringify({ platforms: { slack: { mode: 'socket', accounts: { work } } } }));
    expect(await cli.json('config', 'check')).not.toHaveProperty('not_served');
  });

  test('names a platform whose credential is none, and so does the doctor', async () => {
    write('config.yaml', JSON.stringify({ platforms: { telegram: { token: 'no token' } } }));
    const problem = 'the Telegram token is not of the form 123:abc';
    expect(await cli.json('config', 'check')).toMatchObject({ not_served: ['telegram'] });
    const { output } = await cli.moirai('config', 'check');
    expect(output).toMatch(/^platforms +web$/m);
    expect(output).toMatch(new RegExp(`^telegram +${problem}$`, 'm'));
    expect((await cli.moirai('doctor')).output).toMatch(new RegExp(`^warn {2}platform:telegram: ${problem}$`, 'm'));
  });

  test('names a platform that is configured and has no token, unless it is turned off', async () => {
    write('config.yaml', JSON.stringify({ platforms: { telegram: { allow: ['42'] } } }));
    expect(await cli.json('config', 'check')).toMatchObject({ not_served: ['telegram'] });
    const { output } = await cli.moirai('config', 'check');
    expect(output).toMatch(/^telegram +configured without token, so it is off$/m);
    expect((await cli.moirai('doctor')).output).toMatch(
      /^warn {2}platform:telegram: configured without token, so it is off\n +Give platforms\.telegram\.token, or set/m,
    );
    write('config.yaml', JSON.stringify({ platforms: { telegram: { allow: ['42'], enabled: false } } }));
    expect(await cli.json('config', 'check')).not.toHaveProperty('not_served');
  });

  test('tells what an entry of allow_commands means that is only the name of a program', async () => {
    write('config.yaml', 'agent: { allow_commands: [git, git status, ls **] }\n');
    const { output } = await cli.moirai('config', 'check');
    expect(output.match(/allow_commands: .*/g)).toEqual([
      expect.stringContaining('"git" allows that command without any arguments'),
    ]);
    expect((await cli.json('config', 'check')).notes).toHaveLength(1);
  });

  test('tells whether the sandbox works', async () => {
    write('config.yaml', 'agent: { sandbox: bubblewrap }\n');
    expect((await cli.json('config', 'check')).notes).toEqual([
      expect.stringMatching(/^agent\.sandbox: (bubblewrap works here, without the network|bwrap .+ No command is run)/),
    ]);
  });

  test('tells every problem, each with its place, key and reason, and exits with 78', async () => {
    write('config.yaml', 'gateway:\n  prot: 1\nlog: { level: loud }\n');
    const file = join(cli.home, 'config.yaml');
    const { code, output, errors } = await cli.moirai('config', 'check');
    expect({ code, output }).toEqual({ code: 78, output: '' });
    expect(errors.split('\n')).toEqual([
      'error: 2 problems [config_invalid]',
      `  ${file}:2:3 gateway.prot: no such setting; did you mean "port"?`,
      `  ${file}:3:8 log.level: "loud" is none of debug, info, warn, error, silent; did you mean "debug"?`,
      expect.stringMatching(/^ {2}Correct the key/),
      '',
    ]);
  });

  test('tells a single problem in one line', async () => {
    write('config.yaml', 'gateway: [');
    const { code, errors } = await cli.moirai('config', 'check');
    expect({ code, errors }).toMatchObject({
      code: 78,
      errors: expect.stringMatching(/^error: .+config\.yaml:1:11 this is no YAML: .+ \[config_invalid\]\n {2}Correct/),
    });
  });

  test('finds every wrong value', async () => {
    // A list cannot be wrong itself and have a wrong entry.
    const settings = Object.entries(WRONG_SETTINGS).filter(([path]) => path !== 'hooks.webhooks');
    write('config.yaml', settings.map(([path, value]) => settingAt(path, value)).reduce(merge));
    const { code, problems } = await check();
    expect(code).toBe(78);
    const told = problems.map(({ path }) => path);
    const untold = settings.filter(([path]) => !told.some((each) => each.startsWith(pathShown(path))));
    expect(untold).toEqual([]);
  });

  test('finds every wrong name, and names the right one', async () => {
    const paths = Object.keys(WRONG_SETTINGS).filter((path) => !path.endsWith('*'));
    write('config.yaml', paths.map((path) => settingAt(`${path}_`, null)).reduce(merge));
    const { code, problems } = await check();
    expect(code).toBe(78);
    for (const path of paths) {
      const nearest = path.split('.').at(-1);
      expect(problems).toContainEqual(expect.objectContaining({ path: pathShown(`${path}_`), nearest }));
    }
  });

  test('reads the environment before .env, and says which name is missing', async () => {
    write('.env', 'PORT=1\nNAME=mine\n');
    write('config.yaml', `gateway: { port: "\${PORT}", name: "\${NAME}", api_key: "\${MISSING_KEY}" }`);
    const { code, errors } = await cli.moirai('config', 'check');
    expect(code).toBe(78);
    expect(errors).toContain('gateway.api_key: the environment variable MISSING_KEY is not set');
    const shown = cli.start(['config', 'show', '--json'], { env: { PORT: '2', MISSING_KEY: 'hidden' } });
    expect(JSON.parse((await finish(shown)).output).gateway).toMatchObject({ port: 2, name: 'mine', api_key: '***' });
  });

  test('says so when the file cannot be read', async () => {
    writeFileSync(join(cli.home, 'config.yaml'), Buffer.from([0xff]));
    const { code, errors } = await cli.moirai('config', 'check');
    expect({ code, errors }).toMatchObject({ code: 78, errors: expect.stringContaining('[config_unreadable]') });
  });
});

/** Two maps as one, at every depth; of two lists, their first entries as one. */
function merge(a: unknown, b: unknown): object {
  if (Array.isArray(a) && Array.isArray(b)) return [merge(a[0], b[0])];
  const [left, right] = [a, b] as Record<string, unknown>[];
  const both = Object.keys(right!).map((key) => {
    const collides = Object.hasOwn(left!, key) && typeof left![key] === 'object' && typeof right![key] === 'object';
    return [key, collides ? merge(left![key], right![key]) : right![key]];
  });
  return { ...left, ...Object.fromEntries(both) };
}

describe('config show', () => {
  test('shows everything as it would be written, without secrets', async () => {
    write('config.yaml', 'gateway: { api_key: hidden }\nsessions: { reset: { idle: 90m } }\n');
    const { code, output } = await cli.moirai('config', 'show');
    expect(code).toBe(0);
    expect(output).toMatch(/^gateway:\n {2}host: 127\.0\.0\.1\n {2}port: 8787\n {2}api_key: "\*\*\*"\n/);
    expect(output).toContain('    idle: 90m\n');
    expect(output).not.toContain('hidden');
    write('config.yaml', output.replace('"***"', 'other'));
    expect(await cli.moirai('config', 'show')).toMatchObject({ code: 0, output });
  });

  test('shows the same as JSON, and what the command line says', async () => {
    expect(await cli.json('config', 'show', '--store', 'postgres://u:hidden@h/d')).toMatchObject({
      store: { url: 'postgres://u:***@h/d' },
      sessions: { reset: { mode: 'idle', idle: '1d', at: '04:00' } },
    });
  });
});

test('config path tells where the file is, or would be', async () => {
  const config = join(cli.home, 'config.yaml');
  expect(await cli.moirai('config', 'path')).toMatchObject({ code: 0, output: `${config}\n` });
  write('config.yaml', 'broken: [');
  expect(await cli.json('config', 'path')).toEqual({
    ...{ home: cli.home, config, config_exists: true },
    ...{ env: join(cli.home, '.env'), env_exists: false },
  });
});

describe('a bad configuration', () => {
  beforeEach(() => write('config.yaml', 'stor: { url: "sqlite:other.db" }\n'));

  test.each([
    [['sessions', 'list']],
    [['--store', 'sqlite:state.db', 'sessions', 'stats']],
    [['events']],
    [['run', '--', 'true']],
    [['doctor']],
    [['config', 'show']],
  ])('stops %j with 78', async (args) => {
    const { code, output, errors } = await cli.moirai(...args);
    expect({ code, output }).toEqual({ code: 78, output: '' });
    expect(errors).toContain('stor: no such setting; did you mean "store"?');
    expect(existsSync(join(cli.home, 'state.db'))).toBe(false);
  });

  test.each([
    [['version']],
    [['--version']],
    [['-h']],
    [['config', '-h']],
    [['help', 'sessions', 'list']],
    [['config', 'path']],
  ])('does not stop %j', async (args) => {
    expect(await cli.moirai(...args)).toMatchObject({ code: 0, errors: '' });
  });
});

describe('commands', () => {
  test('use the store of the configuration, and --store in its place', async () => {
    await cli.live((engine) => converse(engine, chat(1), 'hello', 'hi'));
    const byDefault = await cli.json('sessions', 'list');
    expect(byDefault.data).toHaveLength(1);
    write('.env', 'STORE=other.db\n');
    write('config.yaml', `store: { url: "sqlite:\${STORE}" }`);
    expect((await cli.json('sessions', 'list')).data).toEqual([]);
    expect(existsSync(join(cli.home, 'other.db'))).toBe(true);
    expect(await cli.json('--store', 'sqlite:state.db', 'sessions', 'list')).toEqual(byDefault);
  });

  test('apply the rules of the configuration', async () => {
    write('config.yaml', 'sessions: { heartbeat: 1s, lease_ttl: 2s, reset: { mode: daily, timezone: Asia/Tokyo } }\n');
    expect(await cli.moirai('run', '--', 'true')).toMatchObject({ code: 0, errors: '' });
    expect((await cli.json('sessions', 'list', '--kind', 'batch')).data).toHaveLength(1);
  });
});
