import type { ResetPolicy } from '../lifecycle/reset-policy.ts';
import type { AgentConfig, ChatConfig, Config, DisplaySettings, McpServerConfig, PlatformsConfig } from './config.ts';

const HIDDEN = '***';

/**
 * The configuration as one would write it in `config.yaml`, everything in it, every secret as `***`. Plain data; what it
 * shows means the same when it is loaded again, secrets apart.
 */
export function showConfig(config: Config) {
  const { gateway, store, model, agent, sessions, hooks, memory, access, platforms, mcp, cron, display, log, tracing } =
    config;
  return {
    gateway: {
      host: gateway.host,
      port: gateway.port,
      api_key: hide(gateway.apiKey),
      name: gateway.name,
      drain_timeout: durationText(gateway.drainTimeoutMs),
      max_concurrent_turns: gateway.maxConcurrentTurns,
      allowed_origins: gateway.allowedOrigins,
    },
    store: { url: hidePassword(store.url) },
    model: {
      provider: model.provider,
      name: model.name,
      base_url: hidePasswordIn(model.baseUrl),
      api_key: hide(model.apiKey),
      context_window: model.contextWindow,
      price_in: model.priceIn,
      price_out: model.priceOut,
    },
    agent: showAgent(agent),
    sessions: showSessions(sessions),
    hooks: {
      timeout: durationText(hooks.timeoutMs),
      max_attempts: hooks.maxAttempts,
      webhooks: hooks.webhooks.map((each) => ({ ...each, url: hidePassword(each.url), secret: HIDDEN })),
    },
    memory: {
      provider: memory.provider,
      base_url: hidePasswordIn(memory.baseUrl),
      api_key: hide(memory.apiKey),
      review_every: memory.reviewEvery,
    },
    access,
    platforms: showPlatforms(platforms),
    mcp: { servers: mapValues(mcp.servers, showServer) },
    cron,
    display: { ...showDisplay(display), platforms: mapValues(display.platforms, showDisplay) },
    log,
    tracing: {
      endpoint: hidePasswordIn(tracing.endpoint),
      service_name: tracing.serviceName,
      sample: tracing.sample,
      headers: mapValues(tracing.headers, () => HIDDEN),
    },
  };
}

function showAgent(agent: AgentConfig) {
  return {
    max_steps: agent.maxSteps,
    turn_timeout: durationText(agent.turnTimeoutMs),
    busy_mode: agent.busyMode,
    system_prompt: agent.systemPrompt,
    cache: {
      max_size: agent.cache.maxSize,
      idle_ttl: durationText(agent.cache.idleTtlMs),
      max_bytes: sizeText(agent.cache.maxBytes),
    },
    workspace: agent.workspace,
    allow_commands: agent.allowCommands,
    approval_timeout: durationText(agent.approvalTimeoutMs),
  };
}

function showSessions({ rules, ...sessions }: Config['sessions']) {
  return {
    reset: showPolicy(rules.reset),
    reset_by_type: mapValues(rules.resetByType, showPolicy),
    reset_by_platform: mapValues(rules.resetByPlatform, showPolicy),
    group_per_user: sessions.groupPerUser,
    thread_per_user: sessions.threadPerUser,
    heartbeat: durationText(sessions.heartbeatMs),
    lease_ttl: durationText(sessions.leaseTtlMs),
    resume_window: durationText(rules.resumeWindowMs),
    stuck_after: rules.stuckAfter,
    retention: mapValues(sessions.retentionMs, (ms) => (ms === null ? null : durationText(ms))),
  };
}

function showPolicy({ mode, idleMs, at, timezone, notify, notifyExclude }: Partial<ResetPolicy>) {
  const idle = idleMs === undefined ? undefined : durationText(idleMs);
  const fields = { mode, idle, at, timezone, notify, notify_exclude: notifyExclude };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function showDisplay({ streaming, typing, reactions, toolProgress, footer }: DisplaySettings) {
  return { streaming, typing, reactions, tool_progress: toolProgress, footer };
}

function showChat({ allow, requireMention, wakeWords }: ChatConfig) {
  return { allow, require_mention: requireMention, wake_words: wakeWords };
}

function showPlatforms({ telegram, discord, slack, webhook, web }: PlatformsConfig) {
  return {
    telegram: {
      enabled: telegram.enabled,
      token: hide(telegram.token),
      api_root: hidePasswordIn(telegram.apiRoot),
      mode: telegram.mode,
      webhook_url: hidePasswordIn(telegram.webhookUrl),
      webhook_secret: hide(telegram.webhookSecret),
      ...showChat(telegram),
    },
    discord: {
      enabled: discord.enabled,
      token: hide(discord.token),
      api_root: hidePasswordIn(discord.apiRoot),
      ...showChat(discord),
    },
    slack: {
      enabled: slack.enabled,
      token: hide(slack.token),
      app_token: hide(slack.appToken),
      api_root: hidePasswordIn(slack.apiRoot),
      ...showChat(slack),
    },
    webhook: {
      enabled: webhook.enabled,
      routes: mapValues(webhook.routes, (route) => ({ ...route, secret: HIDDEN })),
    },
    web,
  };
}

function showServer(server: McpServerConfig) {
  return {
    ...server,
    url: hidePasswordIn(server.url),
    env: mapValues(server.env, () => HIDDEN),
    headers: mapValues(server.headers, () => HIDDEN),
  };
}

/** Every secret of the configuration, for a log that must not show them. */
export function secretsOf(config: Config): string[] {
  const { telegram, discord, slack, webhook } = config.platforms;
  const urls = [
    config.store.url,
    config.model.baseUrl,
    config.memory.baseUrl,
    telegram.apiRoot,
    telegram.webhookUrl,
    discord.apiRoot,
    config.tracing.endpoint,
  ];
  const servers = Object.values(config.mcp.servers);
  const addresses = [...urls, slack.apiRoot, ...config.hooks.webhooks.map(({ url }) => url), ...servers.map(urlOf)];
  const found = [
    ...[config.gateway.apiKey, config.model.apiKey, config.memory.apiKey],
    ...[telegram.token, telegram.webhookSecret, discord.token, slack.token, slack.appToken],
    ...config.hooks.webhooks.map(({ secret }) => secret),
    ...Object.values(webhook.routes).map(({ secret }) => secret),
    ...Object.values(config.tracing.headers),
    ...servers.flatMap(({ env, headers }) => [...Object.values(env), ...Object.values(headers)]),
    ...addresses.flatMap(passwordsIn),
  ];
  return [...new Set(found.filter((secret): secret is string => secret !== null && secret !== ''))];
}

const urlOf = ({ url }: McpServerConfig): string | null => url;

function hide(secret: string | null): string | null {
  return secret === null ? null : HIDDEN;
}

const PASSWORD = /(:\/\/[^\s:/@]*:)([^\s/]*)(?=@)/;
const QUERY_SECRET = /([?&](?:password|sslpassword|token|key|api_key|secret)=)([^&\s]*)/gi;

function hidePassword(url: string): string {
  return url.replace(PASSWORD, `$1${HIDDEN}`).replace(QUERY_SECRET, `$1${HIDDEN}`);
}

function hidePasswordIn(url: string | null): string | null {
  return url === null ? null : hidePassword(url);
}

/** Also as the one who logs in writes it, without the escapes of a URL. */
function passwordsIn(url: string | null): string[] {
  const text = url ?? '';
  const found = [PASSWORD.exec(text)?.[2] ?? '', ...[...text.matchAll(QUERY_SECRET)].map(([, , value]) => value ?? '')];
  return found.flatMap((written) => [written, unescaped(written)]);
}

function unescaped(written: string): string {
  try {
    return decodeURIComponent(written);
  } catch {
    return written; // A stray % stands for itself.
  }
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** Exactly, in the largest unit that has no remainder. */
function durationText(ms: number): string {
  const unit = UNITS.find(([, length]) => ms > 0 && ms % length === 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}

function sizeText(bytes: number): string {
  const power = [3, 2, 1].find((each) => bytes % 1024 ** each === 0) ?? 0;
  return `${bytes / 1024 ** power}${['B', 'KB', 'MB', 'GB'][power]}`;
}

function mapValues<V, W>(record: Readonly<Record<string, V>>, change: (value: V) => W): Record<string, W> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}
