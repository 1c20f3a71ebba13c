import type { ValueOf } from '../settings/declaration.ts';
import type { configSettings } from './settings.ts';

/** The whole configuration of a gateway, checked and complete: durations in milliseconds, sizes in bytes, paths absolute. */
export type Config = { readonly home: string } & ValueOf<typeof configSettings>;

export type AgentConfig = Config['agent'];
export type DisplayConfig = Config['display'];
/** What people see of a turn beside its reply. Null leaves it to what is less particular. */
export type DisplaySettings = Omit<DisplayConfig, 'platforms'>;
export type HooksConfig = Config['hooks'];
/** A process to start, or an address to connect to. */
export type McpServerConfig = Config['mcp']['servers'][string];
export type ModelConfig = Config['model'];
export type TracingConfig = Config['tracing'];
/** An address that events are sent to. */
export type WebhookConfig = HooksConfig['webhooks'][number];
