import type { ResetRules } from '../lifecycle/reset-policy.ts';

/** Everything a gateway is told, checked and complete: durations in milliseconds, sizes in bytes, paths absolute. */
export interface Config {
  readonly home: string;
  readonly gateway: {
    readonly host: string;
    readonly port: number;
    readonly apiKey: string | null;
    readonly name: string | null;
    readonly drainTimeoutMs: number;
    readonly maxConcurrentTurns: number;
    /** Pages of these origins may call, beside the gateway's own. */
    readonly allowedOrigins: readonly string[];
  };
  readonly store: { readonly url: string };
  readonly model: ModelConfig;
  readonly agent: AgentConfig;
  readonly sessions: {
    readonly rules: ResetRules;
    readonly groupPerUser: boolean;
    readonly threadPerUser: boolean;
    readonly heartbeatMs: number;
    readonly leaseTtlMs: number;
    /** By kind; null keeps forever. */
    readonly retentionMs: Readonly<Record<string, number | null>>;
  };
  readonly hooks: HooksConfig;
  readonly memory: {
    /** `files`, `sqlite`, `mem0`, `honcho`, `supermemory`, `none`, or what a plugin calls its own. */
    readonly provider: string;
    /** Of a memory service; null for its own address. */
    readonly baseUrl: string | null;
    readonly apiKey: string | null;
    /** After how many turns what was learnt is looked through; 0 is never. */
    readonly reviewEvery: number;
  };
  readonly access: {
    /** Who may talk to the agent: `<platform>:<user>`, `<platform>:*` or `*`. */
    readonly allow: readonly string[];
    /** Whether a stranger is given a code that an admin can approve. */
    readonly pairing: boolean;
    readonly admins: readonly string[];
  };
  readonly platforms: PlatformsConfig;
  readonly mcp: { readonly servers: Readonly<Record<string, McpServerConfig>> };
  readonly cron: { readonly enabled: boolean };
  /** Nothing to be set yet. */
  readonly display: Readonly<Record<string, never>>;
  readonly log: { readonly level: LogLevel; readonly format: 'pretty' | 'json' };
}

export interface HooksConfig {
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  readonly webhooks: readonly WebhookConfig[];
}

/** An address that events are sent to. */
export interface WebhookConfig {
  readonly name: string;
  readonly url: string;
  /** `whsec_` and base64: what the bodies are signed with. */
  readonly secret: string;
  readonly events: readonly string[];
}

/** A platform whose token is null is off, as is one that is not enabled. */
export interface PlatformsConfig {
  readonly telegram: TelegramConfig;
  readonly discord: DiscordConfig;
  readonly slack: SlackConfig;
  readonly webhook: { readonly enabled: boolean; readonly routes: Readonly<Record<string, WebhookRouteConfig>> };
  readonly web: { readonly enabled: boolean };
}

export interface TelegramConfig {
  readonly enabled: boolean;
  readonly token: string | null;
  /** Null for Telegram's own. */
  readonly apiRoot: string | null;
  readonly mode: 'polling' | 'webhook';
  /** Where Telegram reaches this gateway; never null with `webhook`. */
  readonly webhookUrl: string | null;
  readonly webhookSecret: string | null;
  readonly allow: readonly string[];
}

export interface DiscordConfig {
  readonly enabled: boolean;
  readonly token: string | null;
  readonly apiRoot: string | null;
  readonly allow: readonly string[];
}

export interface SlackConfig {
  readonly enabled: boolean;
  readonly token: string | null;
  readonly appToken: string | null;
  readonly apiRoot: string | null;
  readonly allow: readonly string[];
}

/** A way in for other programs: `POST /webhooks/<name>`. */
export interface WebhookRouteConfig {
  readonly secret: string;
  /** What the agent is told to do with the body; null for nothing beside it. */
  readonly prompt: string | null;
  /** Where the reply goes, as `moirai send` takes it; null for nowhere. */
  readonly deliver: string | null;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface ModelConfig {
  /** Never `auto` once it is loaded: then it is known which. */
  readonly provider: 'auto' | 'openai' | 'anthropic' | 'openai-compatible' | 'offline';
  readonly name: string | null;
  readonly baseUrl: string | null;
  readonly apiKey: string | null;
  readonly contextWindow: number | null;
  /** Of a million tokens, in whatever currency; null when it is not known. */
  readonly priceIn: number | null;
  readonly priceOut: number | null;
}

export interface AgentConfig {
  readonly maxSteps: number;
  readonly turnTimeoutMs: number;
  readonly busyMode: 'queue' | 'interrupt' | 'steer';
  readonly systemPrompt: string | null;
  readonly cache: { readonly maxSize: number; readonly idleTtlMs: number; readonly maxBytes: number };
  /** Where file tools work; `<home>/workspace` unless said otherwise. */
  readonly workspace: string;
  /** Commands that may run without asking: their first words. */
  readonly allowCommands: readonly string[];
  /** How long a person has to allow something. */
  readonly approvalTimeoutMs: number;
}

/** A process to start, or an address to connect to. */
export interface McpServerConfig {
  readonly command: string | null;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly url: string | null;
  readonly headers: Readonly<Record<string, string>>;
}
