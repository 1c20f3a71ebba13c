import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigHome } from '../../test/support/config-home.ts';
import { DEFAULT_RESET_RULES } from '../lifecycle/reset-policy.ts';
import { loadConfig } from './load-config.ts';

let home: ConfigHome;

beforeEach(() => {
  home = new ConfigHome();
});

afterEach(() => home.remove());

test('a home without files has the defaults of the contract', () => {
  const day = 86_400_000;
  const timezone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  expect(loadConfig({ home: home.path, env: {} })).toEqual({
    home: home.path,
    gateway: {
      ...{ host: '127.0.0.1', port: 8787, apiKey: null, name: null, drainTimeoutMs: 60_000, maxConcurrentTurns: 16 },
      allowedOrigins: [],
      keys: [],
      trustedProxies: [],
    },
    store: { url: 'sqlite:state.db' },
    model: {
      provider: 'offline',
      name: null,
      baseUrl: null,
      apiKey: null,
      contextWindow: null,
      priceIn: null,
      priceOut: null,
    },
    agent: {
      ...{ maxSteps: 50, turnTimeoutMs: 1_800_000, busyMode: 'queue', systemPrompt: null },
      cache: { maxSize: 128, idleTtlMs: 3_600_000, maxBytes: 268_435_456 },
      ...{
        workspace: { folder: join(home.path, 'workspaces'), perConversation: true },
        maxReceived: 500 * 1024 ** 2,
        allowCommands: [],
        sandbox: 'off',
        sandboxNetwork: false,
        approvalTimeoutMs: 300_000,
      },
    },
    sessions: {
      ...{ ...DEFAULT_RESET_RULES, reset: { ...DEFAULT_RESET_RULES.reset, timezone } },
      ...{ groupPerUser: true, threadPerUser: false, heartbeatMs: 15_000, leaseTtlMs: 90_000 },
      retentionMs: {
        ...{ chat: null, cli: null, cron: 30 * day, webhook: 30 * day, batch: 30 * day, api: 30 * day },
        ...{ child: 30 * day, events: 90 * day },
      },
    },
    hooks: { timeoutMs: 30_000, maxAttempts: 8, webhooks: [] },
    memory: { provider: 'files', baseUrl: null, apiKey: null, reviewEvery: 10, reviewMinTurns: 3 },
    access: { allow: [], pairing: true, admins: [], approvals: 'admins', commands: { dm: [], group: [] } },
    platforms: expect.objectContaining({
      telegram: {
        ...{ enabled: true, token: null, apiRoot: null, mode: 'polling', webhookUrl: null, webhookSecret: null },
        ...{ allow: [], requireMention: true, wakeWords: [], accounts: {} },
      },
      web: { enabled: true },
    }),
    mcp: { servers: {} },
    cron: { enabled: true },
    display: { streaming: null, typing: null, reactions: null, toolProgress: null, footer: null, platforms: {} },
    log: { level: 'info', format: 'pretty' },
    tracing: { endpoint: null, serviceName: 'moirai', sample: 1, headers: {} },
  });
});

test('an empty file, empty sections and the contract’s own text mean the same', () => {
  const defaults = loadConfig({ home: home.path, env: {} });
  expect(home.load('')).toEqual(defaults);
  expect(home.load('# nothing\n')).toEqual(defaults);
  expect(home.load('gateway:\nsessions:\n  reset:\n  reset_by_type:\nmcp:\n  servers:\naccess: { allow: }\n')).toEqual(
    defaults,
  );
  expect(home.load(CONTRACT)).toEqual(defaults);
});

const CONTRACT = `
gateway:  { host: 127.0.0.1, port: 8787, api_key: null, name: null, drain_timeout: 60s, max_concurrent_turns: 16 }
store:    { url: "sqlite:state.db" }            # or postgres://user:pw@host/db
model:    { provider: auto, name: null, base_url: null, api_key: null, context_window: null }
agent:    { max_steps: 50, turn_timeout: 30m, busy_mode: queue, system_prompt: null,
            cache: { max_size: 128, idle_ttl: 1h, max_bytes: 256MB } }
sessions:
  reset:  { mode: idle, idle: 24h, at: "04:00", timezone: null, notify: next, notify_exclude: [api, webhook] }
  reset_by_type: {}
  reset_by_platform: {}
  group_per_user: true
  thread_per_user: false
  heartbeat: 15s
  lease_ttl: 90s
  resume_window: 1h
  stuck_after: 3
  retention: { chat: null, cron: 30d, webhook: 30d, batch: 30d, api: 30d, child: 30d }
hooks:    { timeout: 30s, max_attempts: 8, webhooks: [] }
memory:   { provider: files, review_every: 10 }
access:   { allow: [], pairing: true, admins: [] }
platforms: { telegram: { token: "\${TELEGRAM_BOT_TOKEN}", api_root: null, mode: polling, allow: [] } }
mcp: { servers: {} }
cron: { enabled: true }
display: {}
log: { level: info, format: pretty }
`;

test('the result is frozen to its depths', () => {
  const config = home.load('mcp: { servers: { files: { command: npx, args: [-y, server] } } }');
  const frozen = (value: object): boolean =>
    Object.isFrozen(value) &&
    Object.values(value).every((inner) => typeof inner !== 'object' || !inner || frozen(inner));
  expect(frozen(config)).toBe(true);
});

test('sessions become the rules of the lifecycle, with only what is given in each override', () => {
  const { sessions } = home.load(`
sessions:
  reset: { mode: both, idle: 90m, at: 23:30, timezone: Europe/Rome, notify: false }
  reset_by_type: { thread: { mode: none }, channel: { timezone: null } }
  reset_by_platform: { telegram: { idle: 7d, notify_exclude: [] } }
  resume_window: 0s
  stuck_after: 5
`);
  expect(sessions).toMatchObject({
    reset: {
      ...{ mode: 'both', idleMs: 5_400_000, at: '23:30', timezone: 'Europe/Rome', notify: 'never' },
      notifyExclude: ['api', 'webhook'],
    },
    resetByType: {
      thread: { mode: 'none' },
      channel: { timezone: new Intl.DateTimeFormat().resolvedOptions().timeZone },
    },
    resetByPlatform: { telegram: { idleMs: 604_800_000, notifyExclude: [] } },
    resumeWindowMs: 0,
    stuckAfter: 5,
  });
});

test('lists of users take numbers as people write them', () => {
  const { access, platforms } = home.load(
    'access: { allow: ["telegram:7", "telegram:*", "*"] }\nplatforms: { telegram: { allow: [1] } }',
  );
  expect(access.allow).toEqual(['telegram:7', 'telegram:*', '*']);
  expect(platforms.telegram.allow).toEqual(['1']);
});

test('an id alone is nobody where people of all platforms are named', () => {
  expect(home.problems('access: { allow: [42], admins: ["telegram:7", "ada", ":7", "telegram:"] }')).toEqual([
    'access.allow[0]: 42 is no person of a platform; write <platform>:<id>, such as telegram:42',
    'access.admins[1]: "ada" is no person of a platform; write <platform>:<id>, such as telegram:42',
    'access.admins[2]: ":7" is no person of a platform; write <platform>:<id>, such as telegram:42',
    'access.admins[3]: "telegram:" is no person of a platform; write <platform>:<id>, such as telegram:42',
  ]);
});

test('a workspace is for each conversation, or shared, by its usual name or a path from the home', () => {
  const read = (written: string) => home.load(`agent: { workspace: ${written} }`).agent.workspace;
  const own = { folder: join(home.path, 'workspaces'), perConversation: true };
  expect([read('conversation'), read('null')]).toEqual([own, own]);
  expect(read('shared')).toEqual({ folder: join(home.path, 'workspace'), perConversation: false });
  expect(read('../elsewhere')).toEqual({ folder: join(home.path, '../elsewhere'), perConversation: false });
});

test('YAML is 1.2: on, off, yes and 04:00 are text, not flags and numbers', () => {
  expect(home.problems('gateway: { name: on }\ncron: { enabled: yes }')).toEqual([
    'cron.enabled: "yes" is neither true nor false',
  ]);
  expect(home.load('gateway: { name: off }\nsessions: { reset: { at: 04:00 } }').gateway.name).toBe('off');
});

describe('the model', () => {
  const all = { ANTHROPIC_API_KEY: 'a-key', OPENAI_API_KEY: 'o-key' };
  test.each([
    ['', {}, { provider: 'offline', apiKey: null }],
    ['', all, { provider: 'anthropic', apiKey: 'a-key' }],
    ['', { OPENAI_API_KEY: 'o-key' }, { provider: 'openai', apiKey: 'o-key' }],
    ['', { ANTHROPIC_API_KEY: '', OPENAI_API_KEY: '' }, { provider: 'offline', apiKey: null }],
    ['model: { provider: openai }', all, { provider: 'openai', apiKey: 'o-key' }],
    ['model: { provider: offline }', all, { provider: 'offline', apiKey: null }],
    ['model: { api_key: mine }', all, { provider: 'anthropic', apiKey: 'mine' }],
    ['model: { base_url: http://localhost:11434/v1 }', all, { provider: 'openai-compatible', apiKey: null }],
    ['model: { base_url: http://localhost:1, provider: anthropic }', all, { provider: 'anthropic', apiKey: 'a-key' }],
  ])('of %j with %j is %j', (yaml, env, expected) => {
    expect(home.load(yaml, env).model).toMatchObject(expected);
  });
});

describe('the environment', () => {
  test(`replaces every \${NAME} in a text, and gives numbers and flags too`, () => {
    const env = { HOST: 'db.local', PW: 'p', PORT: '9000', ON: 'false' };
    const yaml = `store: { url: "postgres://u:\${PW}@\${HOST}/d" }\ngateway: { port: "\${PORT}" }\ncron: { enabled: "\${ON}" }`;
    expect(home.load(yaml, env)).toMatchObject({
      ...{ store: { url: 'postgres://u:p@db.local/d' }, gateway: { port: 9000 }, cron: { enabled: false } },
    });
  });

  test(`is left alone by $\${NAME}, and by what is not text`, () => {
    expect(home.load(`agent: { system_prompt: "a $\${HOME} b" }`, { HOME: 'x' }).agent.systemPrompt).toBe(
      `a \${HOME} b`,
    );
  });

  test('lacks a name: the problem tells which', () => {
    expect(home.problems(`gateway: { api_key: "\${NOPE}", name: "\${a b}" }`)).toEqual([
      'gateway.api_key: the environment variable NOPE is not set',
      `gateway.name: "\${a b}" names no environment variable; write "$\${a b}" for the text itself`,
    ]);
  });

  test('may lack the tokens of the defaults', () => {
    const yaml = `platforms: { telegram: { token: "\${TELEGRAM_BOT_TOKEN}" } }`;
    expect(home.load(yaml).platforms).toMatchObject({ telegram: { token: null } });
    expect(home.problems(`platforms: { telegram: { token: "\${MY_BOT}" } }`)).toHaveLength(1);
  });

  test('gives the tokens of platforms unless the file gives others', () => {
    const env = { TELEGRAM_BOT_TOKEN: 't' };
    const tokenWith = (yaml: string) => home.load(yaml, env).platforms.telegram.token;
    expect(tokenWith('')).toBe('t');
    expect(tokenWith('platforms: { telegram: { token: null } }')).toBeNull();
    expect(tokenWith('platforms: { telegram: { token: other } }')).toBe('other');
    expect(tokenWith('platforms: { telegram: { accounts: { work: { token: own } } } }')).toBe('t');
  });

  test('gives the collector of traces unless the file gives another, or none', () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
    expect(home.load('', env).tracing.endpoint).toBe('http://127.0.0.1:4318');
    expect(home.load('tracing: { endpoint: "https://x.example" }', env).tracing.endpoint).toBe('https://x.example');
    expect(home.load('tracing: { endpoint: null }', env).tracing.endpoint).toBeNull();
  });

  test(`wins over .env, which serves both \${NAME} and what is read without being asked for`, () => {
    home.write('.env', '# keys\nOPENAI_API_KEY=from-file\nexport NAME="from file" # yes\nTELEGRAM_BOT_TOKEN=\'a#b\'\n');
    expect(home.load(`gateway: { name: "\${NAME}" }`, { OPENAI_API_KEY: 'from-environment' })).toMatchObject({
      gateway: { name: 'from file' },
      model: { provider: 'openai', apiKey: 'from-environment' },
      platforms: { telegram: { token: 'a#b' } },
    });
  });

  test('knows nothing that JavaScript knows by itself', () => {
    expect(home.problems(`gateway: { name: "\${constructor}" }`)).toHaveLength(1);
  });
});
