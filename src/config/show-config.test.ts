import { afterEach, beforeEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { ConfigHome } from '../../test/support/config-home.ts';
import { secretsOf, showSettings } from '../settings/show-settings.ts';
import { configSettings } from './settings.ts';

let home: ConfigHome;

beforeEach(() => {
  home = new ConfigHome();
});

afterEach(() => home.remove());

const SECRETIVE = `
gateway: { api_key: hidden-1 }
store: { url: "postgres://ada:hidden-2%2F@host/db?sslpassword=hidden-3" }
model: { base_url: "https://u:hidden-4@host/v1?api_key=hidden-5", api_key: hidden-6 }
hooks: { webhooks: [{ name: a, url: "https://u:hidden-7@x", secret: whsec_hidden8, events: ["*"] }] }
memory: { base_url: "https://u:hidden-20@x", api_key: hidden-21 }
platforms:
  telegram:
    token: hidden-9
    webhook_secret: hidden-10
    webhook_url: "https://u:hidden-11@x"
    accounts: { work: { token: hidden-12, allow: [7] } }
mcp:
  servers:
    local: { command: npx, args: [-y, server], env: { KEY: hidden-17, EMPTY: "" } }
    remote: { url: "https://u:hidden-18@x", headers: { Authorization: "Bearer hidden-19" } }
tracing: { endpoint: "https://u:hidden-22@x", headers: { Authorization: "Basic hidden-23" } }
`;

test('no secret is shown, and everything else is', () => {
  const shown = showSettings(configSettings, home.load(SECRETIVE));
  expect(JSON.stringify(shown)).not.toContain('hidden');
  expect(shown).toMatchObject({
    gateway: { api_key: '***', name: null },
    store: { url: 'postgres://ada:***@host/db?sslpassword=***' },
    model: { base_url: 'https://u:***@host/v1?api_key=***', api_key: '***', provider: 'openai-compatible' },
    hooks: { webhooks: [{ name: 'a', url: 'https://u:***@x', secret: '***', events: ['*'] }] },
    memory: { base_url: 'https://u:***@x', api_key: '***' },
    platforms: {
      telegram: {
        ...{ token: '***', webhook_secret: '***', webhook_url: 'https://u:***@x' },
        accounts: { work: { token: '***', allow: ['7'] } },
      },
    },
    mcp: {
      servers: {
        local: { command: 'npx', args: ['-y', 'server'], env: { KEY: '***', EMPTY: '***' } },
        remote: { url: 'https://u:***@x', headers: { Authorization: '***' } },
      },
    },
    tracing: { endpoint: 'https://u:***@x', headers: { Authorization: '***' } },
  });
});

test('every secret is known to whoever has to hide it', () => {
  const secrets = secretsOf(configSettings, home.load(SECRETIVE));
  for (const written of SECRETIVE.matchAll(/hidden-?\d+/g)) {
    expect(secrets.some((secret) => secret.includes(written[0]))).toBe(true);
  }
  expect(secrets).toContain('hidden-2/');
  expect(secrets).not.toContain('');
});

test('what is shown means the same when it is loaded', () => {
  const config = home.load(`
gateway: { name: tower, drain_timeout: 1500ms, allowed_origins: ["https://example.org"] }
agent: { workspace: /srv/work, allow_commands: [git status, "npm test"], cache: { max_bytes: 1000B, idle_ttl: 90m } }
sessions:
  reset: { mode: both, idle: 36h, timezone: Asia/Tokyo }
  reset_by_type: { dm: { mode: none }, thread: { idle: 1s, at: 00:00, notify: false, notify_exclude: [] } }
  reset_by_platform: { telegram: { timezone: UTC } }
  resume_window: 0s
  retention: { chat: 365d, cron: null }
memory: { provider: mine, review_every: 0 }
access: { allow: ["*"], pairing: false, admins: ["telegram:42"], commands: { dm: [new], group: [help] } }
platforms: { telegram: { require_mention: false, wake_words: [loom] }, web: { enabled: false } }
display: { streaming: false, platforms: { telegram: { tool_progress: names, footer: true } } }
mcp: { servers: { local: { command: npx } } }
log: { level: silent, format: json }
`);
  expect(home.load(stringify(showSettings(configSettings, config)))).toEqual(config);
});
