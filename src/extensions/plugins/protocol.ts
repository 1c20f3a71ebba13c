import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { SessionKind } from '../../lifecycle/states.ts';
import type { FinishedToolCall, GateName, InboxMessage, JsonSchema, PluginCommandCall, SendTarget } from './api.ts';

/** What a thread is started with. */
export interface ThreadTask {
  readonly name: string;
  readonly folder: string;
  readonly home: string;
  readonly main: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** What a plugin registered, in words that cross a thread. */
export interface Offer {
  /** The types of the log that its observers want, each once. */
  readonly events: readonly string[];
  readonly hearsTools: boolean;
  readonly gates: readonly GateOffer[];
  readonly tools: readonly ToolOffer[];
  readonly commands: readonly { readonly name: string; readonly takes?: string; readonly summary: string }[];
  readonly memoryProviders: readonly MemoryOffer[];
  readonly platforms: readonly PlatformOffer[];
}

export interface GateOffer {
  readonly gate: GateName;
  readonly timeoutMs: number | null;
  readonly onFailure: 'open' | 'closed';
}

export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly parallelSafe: boolean;
  /** Null: never. A text: always. `depends`: it has to be asked. */
  readonly danger: { readonly text: string } | 'depends' | null;
}

export interface MemoryOffer {
  readonly name: string;
  readonly kinds?: readonly SessionKind[];
  readonly methods: readonly string[];
  readonly tools: readonly { readonly name: string; readonly description: string; readonly inputSchema: JsonSchema }[];
}

export interface PlatformOffer {
  readonly name: string;
  readonly maxText: number;
  readonly markdown: boolean;
}

/** Something the gateway wants of a plugin. */
export type Call =
  | { readonly what: 'event'; readonly event: MoiraiEvent }
  | { readonly what: 'tool_done'; readonly done: FinishedToolCall }
  | { readonly what: 'gate'; readonly index: number; readonly question: unknown }
  | { readonly what: 'tool'; readonly name: string; readonly args: unknown; readonly context: object }
  | { readonly what: 'danger'; readonly name: string; readonly args: unknown }
  | { readonly what: 'command'; readonly name: string; readonly call: PluginCommandCall }
  | MemoryCall
  | PlatformCall
  | { readonly what: 'unload' };

export type MemoryCall =
  | { readonly what: 'memory'; readonly provider: string; readonly method: string; readonly args: readonly unknown[] }
  | {
      readonly what: 'memory_tool';
      readonly provider: string;
      readonly tool: string;
      readonly args: unknown;
      readonly context: object;
    };

export type PlatformCall =
  | { readonly what: 'platform_start' | 'platform_stop'; readonly name: string }
  | { readonly what: 'send'; readonly name: string; readonly target: SendTarget; readonly text: string };

/** An error that crosses a thread. */
export interface Fault {
  readonly message: string;
  /** Of the error, or of the first of its causes that has one. */
  readonly code: string | null;
}

export type ToThread =
  | { readonly type: 'call'; readonly id: number; readonly call: Call }
  | { readonly type: 'abort'; readonly id: number }
  /** To `receive`; null when the message is durable. */
  | { readonly type: 'received'; readonly id: number; readonly fault: Fault | null }
  | { readonly type: 'ping' };

export type FromThread =
  | { readonly type: 'loaded'; readonly offer: Offer }
  | { readonly type: 'refused'; readonly fault: Fault }
  /** The call reached the plugin: until then it certainly has done nothing. */
  | { readonly type: 'began'; readonly id: number }
  /** The value as JSON, so that its length is known before anybody reads it. */
  | { readonly type: 'answer'; readonly id: number; readonly value: string }
  | { readonly type: 'fault'; readonly id: number; readonly fault: Fault }
  | { readonly type: 'receive'; readonly id: number; readonly platform: string; readonly message: InboxMessage }
  | { readonly type: 'line'; readonly level: Level; readonly message: string; readonly fields: object }
  | { readonly type: 'pong' };

export type Level = 'debug' | 'info' | 'warn' | 'error';
