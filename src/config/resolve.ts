import { resolve } from 'node:path';
import { type ResetPolicy, type ResetRules, validateRules } from '../lifecycle/reset-policy.ts';
import type {
  AgentConfig,
  ChatConfig,
  Config,
  DisplayConfig,
  DisplaySettings,
  McpServerConfig,
  ModelConfig,
  PlatformsConfig,
  TracingConfig,
  WebhookRouteConfig,
} from './config.ts';
import type { ConfigFile, DisplayFile, ResetOverride, Variable } from './schema.ts';

/** The file as the gateway wants it: nothing left open, nothing to be looked up again. */
export function resolveConfig(file: ConfigFile, home: string, variable: Variable): Config {
  return {
    home,
    gateway: {
      host: file.gateway.host,
      port: file.gateway.port,
      apiKey: file.gateway.api_key,
      name: file.gateway.name,
      drainTimeoutMs: file.gateway.drain_timeout,
      maxConcurrentTurns: file.gateway.max_concurrent_turns,
      allowedOrigins: file.gateway.allowed_origins,
    },
    store: { url: file.store.url },
    model: modelOf(file.model, variable),
    agent: agentOf(file.agent, home),
    sessions: {
      rules: rulesOf(file.sessions),
      groupPerUser: file.sessions.group_per_user,
      threadPerUser: file.sessions.thread_per_user,
      heartbeatMs: file.sessions.heartbeat,
      leaseTtlMs: file.sessions.lease_ttl,
      retentionMs: file.sessions.retention,
    },
    hooks: {
      timeoutMs: file.hooks.timeout,
      maxAttempts: file.hooks.max_attempts,
      webhooks: file.hooks.webhooks,
    },
    memory: {
      provider: file.memory.provider,
      baseUrl: file.memory.base_url,
      apiKey: file.memory.api_key,
      reviewEvery: file.memory.review_every,
    },
    access: file.access,
    platforms: platformsOf(file.platforms),
    mcp: { servers: file.mcp.servers satisfies Record<string, McpServerConfig> },
    cron: file.cron,
    display: displayOf(file.display),
    log: file.log,
    tracing: tracingOf(file.tracing),
  };
}

/** Which model answers follows from what is there, and so does its key. */
function modelOf(model: ConfigFile['model'], variable: Variable): ModelConfig {
  const provider = model.provider === 'auto' ? detectProvider(model.base_url, variable) : model.provider;
  return {
    provider,
    name: model.name,
    baseUrl: model.base_url,
    apiKey: model.api_key ?? keyOf(provider, variable),
    contextWindow: model.context_window,
    priceIn: model.price_in,
    priceOut: model.price_out,
  };
}

function detectProvider(baseUrl: string | null, variable: Variable): ModelConfig['provider'] {
  if (baseUrl !== null) return 'openai-compatible';
  if (variable('ANTHROPIC_API_KEY') !== null) return 'anthropic';
  return variable('OPENAI_API_KEY') === null ? 'offline' : 'openai';
}

/** A key goes only to whom it belongs: a server of unknown owner gets none that it was not given. */
function keyOf(provider: ModelConfig['provider'], variable: Variable): string | null {
  if (provider === 'anthropic') return variable('ANTHROPIC_API_KEY');
  return provider === 'openai' ? variable('OPENAI_API_KEY') : null;
}

function agentOf(agent: ConfigFile['agent'], home: string): AgentConfig {
  return {
    maxSteps: agent.max_steps,
    turnTimeoutMs: agent.turn_timeout,
    busyMode: agent.busy_mode,
    systemPrompt: agent.system_prompt,
    cache: {
      maxSize: agent.cache.max_size,
      idleTtlMs: agent.cache.idle_ttl,
      maxBytes: agent.cache.max_bytes,
    },
    workspace: resolve(home, agent.workspace ?? 'workspace'),
    allowCommands: agent.allow_commands,
    approvalTimeoutMs: agent.approval_timeout,
  };
}

function rulesOf(sessions: ConfigFile['sessions']): ResetRules {
  const rules = {
    reset: overrideOf(sessions.reset),
    resetByType: overridesOf(sessions.reset_by_type),
    resetByPlatform: overridesOf(sessions.reset_by_platform),
    resumeWindowMs: sessions.resume_window,
    stuckAfter: sessions.stuck_after,
  };
  validateRules(rules);
  return rules;
}

function overridesOf(entries: Readonly<Record<string, ResetOverride | undefined>>) {
  const given = Object.entries(entries).filter((entry): entry is [string, ResetOverride] => entry[1] !== undefined);
  return Object.fromEntries(given.map(([name, entry]) => [name, overrideOf(entry)]));
}

/** Only what was given: the rest is left to what it is merged over. */
function overrideOf(fields: ResetOverride): Partial<ResetPolicy> {
  const { mode, idle, at, timezone, notify, notify_exclude } = fields;
  return {
    ...(mode !== undefined && { mode }),
    ...(idle !== undefined && { idleMs: idle }),
    ...(at !== undefined && { at }),
    ...(timezone !== undefined && { timezone: timezone ?? machineZone() }),
    ...(notify !== undefined && { notify }),
    ...(notify_exclude !== undefined && { notifyExclude: notify_exclude }),
  };
}

function platformsOf({ telegram, discord, slack, webhook, web }: ConfigFile['platforms']): PlatformsConfig {
  return {
    telegram: {
      ...chatOf(telegram),
      token: telegram.token,
      apiRoot: telegram.api_root,
      mode: telegram.mode,
      webhookUrl: telegram.webhook_url,
      webhookSecret: telegram.webhook_secret,
    },
    discord: {
      ...chatOf(discord),
      token: discord.token,
      apiRoot: discord.api_root,
    },
    slack: {
      ...chatOf(slack),
      token: slack.token,
      appToken: slack.app_token,
      apiRoot: slack.api_root,
    },
    webhook: {
      enabled: webhook.enabled,
      routes: webhook.routes satisfies Record<string, WebhookRouteConfig>,
    },
    web,
  };
}

function chatOf(file: ConfigFile['platforms']['telegram' | 'discord' | 'slack']): ChatConfig {
  const { enabled, allow, require_mention, wake_words } = file;
  return { enabled, allow, requireMention: require_mention, wakeWords: wake_words };
}

function displayOf({ platforms, ...all }: ConfigFile['display']): DisplayConfig {
  const particular = Object.entries(platforms).map(([name, fields]) => [name, displaySettingsOf(fields)] as const);
  return { ...displaySettingsOf(all), platforms: Object.fromEntries(particular) };
}

function displaySettingsOf({ tool_progress, ...same }: DisplayFile): DisplaySettings {
  return { ...same, toolProgress: tool_progress };
}

function tracingOf({ service_name, ...same }: ConfigFile['tracing']): TracingConfig {
  return { ...same, serviceName: service_name };
}

/** The IANA name of the zone this machine lives in. */
function machineZone(): string {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  // What a machine without a zone answers is no name that can be given back to it.
  return timeZone === 'Etc/Unknown' ? 'UTC' : timeZone;
}
