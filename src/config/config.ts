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
    /** May do everything; without any, everybody who may talk may. */
    readonly admins: readonly string[];
    /** Which slash commands others may give; with none named, all that are not an operator's. */
    readonly commands: { readonly dm: readonly string[]; readonly group: readonly string[] };
  };
  readonly platforms: PlatformsConfig;
  readonly mcp: { readonly servers: Readonly<Record<string, McpServerConfig>> };
  readonly cron: { readonly enabled: boolean };
  readonly display: DisplayConfig;
  readonly log: { readonly level: LogLevel; readonly format: 'pretty' | 'json' };
  readonly tracing: TracingConfig;
}

export interface TracingConfig {
  /** An OpenTelemetry collector; null for no traces. */
  readonly endpoint: string | null;
  readonly serviceName: string;
  /** Which part of all traces is kept, from 0 to 1. */
  readonly sample: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** What people see of a turn beside its reply. Null leaves it to what is less particular. */
export interface DisplaySettings {
  /** Replies grow while they are written. */
  readonly streaming: boolean | null;
  readonly typing: boolean | null;
  /** A sign at the message that is being answered. */
  readonly reactions: boolean | null;
  readonly toolProgress: 'off' | 'names' | 'all' | null;
  /** Model and tokens below a reply. */
  readonly footer: boolean | null;
}

export interface DisplayConfig extends DisplaySettings {
  readonly platforms: Readonly<Record<string, DisplaySettings>>;
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

/** What every chat platform is told. */
export interface ChatConfig {
  readonly enabled: boolean;
  readonly allow: readonly string[];
  /** In groups only what is said to us is heard. */
  readonly requireMention: boolean;
  /** Words that count as our name. */
  readonly wakeWords: readonly string[];
}

export interface TelegramConfig extends ChatConfig {
  readonly token: string | null;
  /** Null for Telegram's own. */
  readonly apiRoot: string | null;
  readonly mode: 'polling' | 'webhook';
  /** Where Telegram reaches this gateway; never null with `webhook`. */
  readonly webhookUrl: string | null;
  readonly webhookSecret: string | null;
}

export interface DiscordConfig extends ChatConfig {
  readonly token: string | null;
  readonly apiRoot: string | null;
}

export interface SlackConfig extends ChatConfig {
  readonly token: string | null;
  readonly appToken: string | null;
  readonly apiRoot: string | null;
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
