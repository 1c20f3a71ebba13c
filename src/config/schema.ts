import type { z } from 'zod';
import { CONVERSATION_TYPES, isPlatformName } from '../lifecycle/session-key.ts';
import { list, named, section, setting } from './building-blocks.ts';
import * as read from './readers.ts';

/** What an environment variable holds; null when it is unset or empty. */
export type Variable = (name: string) => string | null;

/** Variables that are read without being asked for; whoever writes `${NAME}` of one of these may leave it unset. */
export const KNOWN_VARIABLES: readonly string[] = [
  'TELEGRAM_BOT_TOKEN',
  'DISCORD_BOT_TOKEN',
  'SLACK_BOT_TOKEN',
  'SLACK_APP_TOKEN',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
];

const MANY = Number.MAX_SAFE_INTEGER;

const timer = (leastMs = 1) => read.duration(leastMs, read.MAX_TIMER_MS);

/** The whole of `config.yaml`, with its defaults as they would be written there. */
export function fileSchema(variable: Variable) {
  return section({
    gateway,
    store: section({ url: setting(read.storeUrl).prefault('sqlite:state.db') }),
    model,
    agent,
    sessions,
    hooks,
    memory: section({
      provider: setting(read.shortName).prefault('files'),
      base_url: setting(read.optional(read.webAddress)).prefault(null),
      api_key: setting(read.optional(read.text)).prefault(null),
      review_every: setting(read.whole(0, MANY)).prefault(10),
    }),
    access: section({
      allow: list(setting(read.identifier)),
      pairing: setting(read.flag).prefault(true),
      admins: list(setting(read.identifier)),
      commands: section({ dm: list(setting(read.shortName)), group: list(setting(read.shortName)) }),
    }),
    platforms: platforms(variable),
    mcp: section({ servers: named(isShortName, 'no name for a server', mcpServer) }),
    cron: section({ enabled: setting(read.flag).prefault(true) }),
    display,
    log: section({
      level: setting(read.oneOf('debug', 'info', 'warn', 'error', 'silent')).prefault('info'),
      format: setting(read.oneOf('pretty', 'json')).prefault('pretty'),
    }),
    tracing: section({
      endpoint: setting(read.optional(read.webAddress)).prefault(variable('OTEL_EXPORTER_OTLP_ENDPOINT')),
      service_name: setting(read.text).prefault('moirai'),
      sample: setting(read.share).prefault(1),
      headers: named(() => true, 'no name', setting(plainText)),
    }),
  });
}

export type ConfigFile = z.output<ReturnType<typeof fileSchema>>;

const gateway = section(
  {
    host: setting(read.hostName).prefault('127.0.0.1'),
    port: setting(read.whole(0, 65_535)).prefault(8787),
    api_key: setting(read.optional(read.text)).prefault(null),
    name: setting(read.optional(read.text)).prefault(null),
    drain_timeout: setting(timer(0)).prefault('60s'),
    max_concurrent_turns: setting(read.whole(1, MANY)).prefault(16),
    allowed_origins: list(setting(read.origin)),
  },
  ({ host, api_key }) =>
    host === undefined || isLoopback(host) || api_key !== null
      ? null
      : { key: 'host', fault: 'no loopback address: whoever reaches it could use the agent, so set gateway.api_key' },
);

const model = section(
  {
    provider: setting(read.oneOf('auto', 'openai', 'anthropic', 'openai-compatible', 'offline')).prefault('auto'),
    name: setting(read.optional(read.text)).prefault(null),
    base_url: setting(read.optional(read.webAddress)).prefault(null),
    api_key: setting(read.optional(read.text)).prefault(null),
    context_window: setting(read.optional(read.whole(1, MANY))).prefault(null),
    price_in: setting(read.optional(read.price)).prefault(null),
    price_out: setting(read.optional(read.price)).prefault(null),
  },
  ({ provider, base_url }) =>
    provider === 'openai-compatible' && base_url === null
      ? { key: 'provider', fault: 'nothing without model.base_url, the address of the server' }
      : null,
);

const agent = section({
  max_steps: setting(read.whole(1, MANY)).prefault(50),
  turn_timeout: setting(timer()).prefault('30m'),
  busy_mode: setting(read.oneOf('queue', 'interrupt', 'steer')).prefault('queue'),
  system_prompt: setting(read.optional(read.text)).prefault(null),
  cache: section({
    max_size: setting(read.whole(1, MANY)).prefault(128),
    idle_ttl: setting(timer()).prefault('1h'),
    max_bytes: setting(read.size).prefault('256MB'),
  }),
  workspace: setting(read.optional(read.text)).prefault(null),
  allow_commands: list(setting(read.text)),
  approval_timeout: setting(timer()).prefault('5m'),
});

const resetFields = {
  mode: setting(read.policyField('mode')),
  idle: setting(read.duration()),
  at: setting(read.policyField('at')),
  timezone: setting(read.optional(read.policyField('timezone'))),
  notify: setting(read.flag),
  notify_exclude: list(setting(read.text)),
};

const resetOverride = section({
  mode: resetFields.mode.optional(),
  idle: resetFields.idle.optional(),
  at: resetFields.at.optional(),
  timezone: resetFields.timezone.optional(),
  notify: resetFields.notify.optional(),
  notify_exclude: resetFields.notify_exclude.optional(),
});

export type ResetOverride = z.output<typeof resetOverride>;

const retention = (byDefault: string | null) => setting(read.optional(read.duration())).prefault(byDefault);

const sessions = section(
  {
    reset: section({
      mode: resetFields.mode.prefault('idle'),
      idle: resetFields.idle.prefault('24h'),
      at: resetFields.at.prefault('04:00'),
      timezone: resetFields.timezone.prefault(null),
      notify: resetFields.notify.prefault(true),
      notify_exclude: resetFields.notify_exclude.prefault(['api', 'webhook']),
    }),
    reset_by_type: section(
      Object.fromEntries(CONVERSATION_TYPES.map((type) => [type, resetOverride.optional()])) as {
        [type in (typeof CONVERSATION_TYPES)[number]]: z.ZodOptional<typeof resetOverride>;
      },
    ),
    reset_by_platform: named(isPlatformName, 'not the name of a platform', resetOverride),
    group_per_user: setting(read.flag).prefault(true),
    thread_per_user: setting(read.flag).prefault(false),
    heartbeat: setting(timer()).prefault('15s'),
    lease_ttl: setting(timer()).prefault('90s'),
    resume_window: setting(read.duration(0)).prefault('1h'),
    stuck_after: setting(read.whole(1, MANY)).prefault(3),
    retention: section({
      chat: retention(null),
      cli: retention(null),
      cron: retention('30d'),
      webhook: retention('30d'),
      batch: retention('30d'),
      api: retention('30d'),
      child: retention('30d'),
    }),
  },
  ({ heartbeat, lease_ttl }) =>
    heartbeat !== undefined && lease_ttl !== undefined && heartbeat >= lease_ttl
      ? { key: 'heartbeat', fault: 'not shorter than sessions.lease_ttl: the lease would run out between two beats' }
      : null,
);

/** Null leaves it to what is less particular: the gateway, then the platform. */
const displayFields = {
  streaming: setting(read.optional(read.flag)).prefault(null),
  typing: setting(read.optional(read.flag)).prefault(null),
  reactions: setting(read.optional(read.flag)).prefault(null),
  tool_progress: setting(read.optional(read.oneOf('off', 'names', 'all'))).prefault(null),
  footer: setting(read.optional(read.flag)).prefault(null),
};

const displaySettings = section(displayFields);

export type DisplayFile = z.output<typeof displaySettings>;

const display = section({
  ...displayFields,
  platforms: named(isPlatformName, 'not the name of a platform', displaySettings),
});

const hooks = section({
  timeout: setting(timer()).prefault('30s'),
  max_attempts: setting(read.whole(1, MANY)).prefault(8),
  webhooks: list(
    section({
      name: setting(read.shortName),
      url: setting(read.webAddress),
      secret: setting(read.signingSecret),
      events: list(setting(read.eventPattern)).refine((events) => events.length > 0, { error: 'missing or empty' }),
    }),
  ).refine((all) => new Set(all.map(({ name }) => name)).size === all.length, {
    error: 'a list in which two webhooks have the same name',
  }),
});

function platforms(variable: Variable) {
  const enabled = setting(read.flag).prefault(true);
  const token = (name: string) => setting(read.optional(read.text)).prefault(variable(name));
  const api_root = setting(read.optional(read.webAddress)).prefault(null);
  const allow = list(setting(read.identifier));
  const inGroups = {
    require_mention: setting(read.flag).prefault(true),
    wake_words: list(setting(read.text)),
  };
  return section({
    telegram: section(
      {
        ...{ enabled, token: token('TELEGRAM_BOT_TOKEN'), api_root },
        mode: setting(read.oneOf('polling', 'webhook')).prefault('polling'),
        webhook_url: setting(read.optional(read.webAddress)).prefault(null),
        webhook_secret: setting(read.optional(read.text)).prefault(null),
        ...{ allow, ...inGroups },
      },
      ({ mode, webhook_url }) =>
        mode === 'webhook' && webhook_url === null
          ? { key: 'mode', fault: 'nothing without webhook_url, the address at which Telegram reaches this gateway' }
          : null,
    ),
    discord: section({ enabled, token: token('DISCORD_BOT_TOKEN'), api_root, allow, ...inGroups }),
    slack: section({
      ...{ enabled, token: token('SLACK_BOT_TOKEN'), app_token: token('SLACK_APP_TOKEN'), api_root, allow },
      ...inGroups,
    }),
    webhook: section({ enabled, routes: named(isShortName, 'no name for a route', webhookRoute) }),
    web: section({ enabled }),
  });
}

const webhookRoute = section({
  secret: setting(read.text),
  prompt: setting(read.optional(read.text)).prefault(null),
  deliver: setting(read.optional(read.text)).prefault(null),
});

const mcpServer = section(
  {
    command: setting(read.optional(read.text)).prefault(null),
    args: list(setting(read.identifier)),
    env: named(() => true, 'no name', setting(plainText)),
    url: setting(read.optional(read.webAddress)).prefault(null),
    headers: named(() => true, 'no name', setting(plainText)),
  },
  ({ command, url }) => {
    if (command === undefined || url === undefined || (command === null) !== (url === null)) return null;
    return command === null
      ? { key: 'command', fault: 'missing; a server has either a command or a url' }
      : { key: 'url', fault: 'one too many: a server has either a command or a url' };
  },
);

/** May be empty, and need not be quoted. */
function plainText(value: unknown): string {
  return value === '' ? '' : read.identifier(value);
}

function isShortName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name);
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
