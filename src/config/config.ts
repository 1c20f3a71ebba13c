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
  readonly mcp: { readonly servers: Readonly<Record<string, McpServerConfig>> };
  readonly log: { readonly level: LogLevel; readonly format: 'pretty' | 'json' };
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface ModelConfig {
  readonly provider: 'auto' | 'openai' | 'anthropic' | 'openai-compatible' | 'offline';
  readonly name: string | null;
  readonly baseUrl: string | null;
  readonly apiKey: string | null;
  readonly contextWindow: number | null;
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
