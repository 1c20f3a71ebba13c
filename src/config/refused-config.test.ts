import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigHome } from '../../test/support/config-home.ts';
import { pathShown, settingAt, WRONG_SETTINGS } from '../../test/support/wrong-settings.ts';
import { allKeys } from '../settings/keys.ts';
import { readSettings } from '../settings/read-settings.ts';
import { loadConfig } from './load-config.ts';
import { dotted, problemsOf } from './problem.ts';
import { configSettings } from './settings.ts';

let home: ConfigHome;

beforeEach(() => {
  home = new ConfigHome();
});

afterEach(() => home.remove());

const KEYS = allKeys(configSettings);

/** The settings of platforms are tried by what they are, so that a platform brings nothing but itself. */
const OF_PLATFORMS = KEYS.filter(({ path }) => /^platforms\.(?!web\.)/.test(path) && !(path in WRONG_SETTINGS));

test('every key of the schema is tried below', () => {
  const tried = [...Object.keys(WRONG_SETTINGS), ...OF_PLATFORMS.map(({ path }) => path)];
  expect(tried.sort()).toEqual(KEYS.map(({ path }) => path).sort());
});

/** One of these is wrong wherever it stands. */
const WRONG_ANYWHERE = ['x', [], 5, {}, [[]]];

test.each(OF_PLATFORMS.map(({ path }) => path))('%s refuses what it cannot be', (path) => {
  const wrong = WRONG_ANYWHERE.find((value) => {
    const { issues } = readSettings(configSettings, settingAt(path, value), { home: home.path, variable: () => null });
    return issues.some(({ of, path: at }) => of === 'value' && dotted(at).startsWith(pathShown(path)));
  });
  expect(wrong).toBeDefined();
  const told = home.problems(settingAt(path, wrong)).filter((problem) => problem.startsWith(pathShown(path)));
  expect(told).toHaveLength(1);
  expect(told[0]).toMatch(/ is | are /);
});

test.each(Object.entries(WRONG_SETTINGS))('%s refuses %j', (path, value) => {
  const told = home.problems(settingAt(path, value)).filter((problem) => problem.startsWith(pathShown(path)));
  expect(told).toHaveLength(1);
  expect(told[0]).toMatch(/ is | are /);
});

test.each(KEYS.filter(({ path }) => !path.endsWith('*')).map(({ path }) => path))(
  '%s is named for what resembles it',
  (path) => {
    const error = home.refusal(settingAt(`${path}_`, null));
    const wrong = problemsOf(error).find(({ message }) => message.startsWith('no such setting'));
    expect(wrong).toMatchObject({
      path: pathShown(`${path}_`),
      nearest: path.split('.').at(-1),
      line: expect.any(Number),
    });
  },
);

test('all problems are told at once, in the order of the file, with file, line and column', () => {
  home.write('.env', 'broken line\n');
  const error = home.refusal(
    'gateway:\n  prot: 1\n  host: 0.0.0.0\n\nlog: { level: loud }\nstor: {}\nhooks: { webhooks: [ { name: a } ] }\n',
  );
  const file = join(home.path, 'config.yaml');
  expect(error.message.split('\n')).toEqual([
    '8 problems',
    `${join(home.path, '.env')}:1:1 this is not NAME=value`,
    `${file}:2:3 gateway.prot: no such setting; did you mean "port"?`,
    `${file}:3:3 gateway.host: "0.0.0.0" is no loopback address: whoever reaches it could use the agent, so set gateway.api_key`,
    `${file}:5:8 log.level: "loud" is none of debug, info, warn, error, silent; did you mean "debug"?`,
    `${file}:6:1 stor: no such setting; did you mean "store"?`,
    `${file}:7:22 hooks.webhooks[0].url: it is missing`,
    `${file}:7:22 hooks.webhooks[0].secret: it is missing`,
    `${file}:7:22 hooks.webhooks[0].events: it is missing or empty`,
  ]);
});

test.each([
  ['a key that is at home elsewhere', 'port: 1', 'port: no such setting; did you mean "gateway.port"?'],
  ['a section that is a value', 'gateway: 5', 'gateway: 5 is not a map of settings'],
  ['a file that is a list', '- a', ': it is not a map of settings'],
  ['a key that is no word', '"a\\nb": 1', '"a\\nb": no such setting; did you mean "mcp"?'],
  ['a prototype', '__proto__: { x: 1 }', '__proto__: no such setting; did you mean "store"?'],
  [
    'a type of conversation',
    'sessions: { reset_by_type: { dms: {} } }',
    'sessions.reset_by_type.dms: no such setting; did you mean "dm"?',
  ],
  [
    'a platform',
    'sessions: { reset_by_platform: { Tele Gram: {} } }',
    'sessions.reset_by_platform["Tele Gram"]: "Tele Gram" is not the name of a platform',
  ],
  [
    'an event',
    settingAt('hooks.webhooks[]', { name: 'a', url: 'http://x', secret: 'whsec_YQ==', events: ['session:ended'] }),
    'hooks.webhooks[0].events[0]: "session:ended" is no event; did you mean "session:end"?',
  ],
  [
    'a lease shorter than its heartbeat',
    'sessions: { lease_ttl: 10s }',
    'sessions.heartbeat: the default is not shorter than sessions.lease_ttl: the lease would run out between two beats',
  ],
  [
    'a server with two ways',
    'mcp: { servers: { a: { command: x, url: http://x } } }',
    'mcp.servers.a.url: "http://x" is one too many: a server has either a command or a url',
  ],
  [
    'a server with no way',
    'mcp: { servers: { a: {} } }',
    'mcp.servers.a.command: it is missing; a server has either a command or a url',
  ],
  [
    'a provider without its address',
    'model: { provider: openai-compatible }',
    'model.provider: "openai-compatible" is nothing without model.base_url, the address of the server',
  ],
])('%s is refused', (_, yaml, expected) => {
  expect(home.problems(yaml)).toEqual([expected]);
});

test('two webhooks of one name are refused', () => {
  const webhook = { name: 'a', url: 'http://x', secret: 'whsec_YQ==', events: ['*'] };
  expect(home.load({ hooks: { webhooks: [webhook] } }).hooks.webhooks).toEqual([webhook]);
  expect(home.problems({ hooks: { webhooks: [webhook, webhook] } })[0]).toContain('the same name');
});

test.each(['0.0.0.0', '::', '192.168.1.2', 'example.org'])(
  '%s takes callers from outside, so it needs a key',
  (host) => {
    expect(home.problems({ gateway: { host } })[0]).toContain('set gateway.api_key');
    expect(home.load({ gateway: { host, api_key: 'k' } }).gateway.host).toBe(host);
    const keys = [{ name: 'shop', key: 'a-key-of-20-characters' }];
    expect(home.load({ gateway: { host, keys } }).gateway.keys).toEqual([{ ...keys[0], scopes: ['chat'] }]);
  },
);

test.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])('%s needs no key', (host) => {
  expect(home.load({ gateway: { host } }).gateway.apiKey).toBe(null);
});

describe('what is no YAML is refused', () => {
  test.each([
    ['a: [1\nb: 2', /config\.yaml:2:1 this is no YAML: /],
    ['gateway: { port: 1 }\ngateway: { port: 2 }\nlog: {}\nlog: {}', /2:1 .*Map keys must be unique\n.*4:1 .*unique$/],
    [`log: { level: \${LEVEL} }`, /1:16 this is no YAML: .*; inside { } and \[ \] a \$\{NAME\} needs quotes$/],
    ['a: 1\n---\nb: 2', /2:1 this is no YAML: Source contains multiple documents$/],
    ['a: *b', /this is no YAML: /],
    ['log: &a { level: *a }', /this is no YAML: /],
    ['a: !secret x', /this is no YAML: Unresolved tag/],
  ])('%j', (yaml, expected) => {
    const error = home.refusal(yaml);
    expect(error.code).toBe('config_invalid');
    expect(error.message).toMatch(expected);
  });
});

describe('a file that cannot be read', () => {
  test('is no UTF-8', () => {
    home.write('config.yaml', Buffer.from([0xff, 0xfe, 0x00]));
    expect(() => loadConfig({ home: home.path, env: {} })).toThrow(
      expect.objectContaining({ code: 'config_unreadable' }),
    );
  });

  test('is a folder, or was named and is not there', () => {
    for (const file of [home.path, join(home.path, 'none.yaml')]) {
      expect(() => loadConfig({ home: home.path, env: {}, file })).toThrow(
        expect.objectContaining({ code: 'config_unreadable' }),
      );
    }
  });

  test('unless it is elsewhere', () => {
    writeFileSync(join(home.path, 'other.yaml'), 'gateway: { port: 1 }');
    expect(loadConfig({ home: home.path, env: {}, file: join(home.path, 'other.yaml') }).gateway.port).toBe(1);
  });
});

test('no problem tells a secret', () => {
  const error = home.refusal(
    `gateway: { api_key: [hidden-1] }
store: { url: "postgre://ada:hidden-2@host/db" }
platforms: { telegram: { token: { a: hidden-3 }, webhook_secret: 5 }, webhook: { routes: { a: { secret: [hidden-6] } } } }
hooks: { webhooks: [{ name: a, url: "ftp://u:hidden-4@x", secret: hidden-5, events: [a] }] }
mcp: { servers: { a: { command: x, env: { A: [hidden-7] }, headers: { B: { c: hidden-8 } } } } }
log: { level: "\${KEY}" }
`,
    { KEY: 'hidden-9' },
  );
  expect(problemsOf(error).length).toBeGreaterThan(8);
  expect(JSON.stringify(error)).not.toContain('hidden');
  expect(JSON.stringify(home.refusal('gateway: { api_key: x }\n"hidden": "hidden" "hidden"'))).not.toContain('"hidden');
});
