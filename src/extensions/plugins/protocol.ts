import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { SessionKind } from '../../lifecycle/states.ts';
import type { FinishedToolCall, GateName, JsonSchema, PluginCommandCall, SendTarget } from './api.ts';

/** What a plugin's process is told to load. */
export interface PluginTask {
  readonly name: string;
  readonly folder: string;
  readonly home: string;
  readonly main: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** What plugin.yaml says of its gates. */
  readonly gates: DeclaredGates;
}

export interface GateSettings {
  /** Null leaves it to `gates.timeout`. */
  readonly timeoutMs: number | null;
  readonly onFailure: 'open' | 'closed';
}

export type DeclaredGates = Readonly<Partial<Record<GateName, GateSettings>>>;

/** What a plugin registered, in words that cross a process. */
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

export interface GateOffer extends GateSettings {
  readonly gate: GateName;
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
  | { readonly what: 'gate'; readonly gate: GateName; readonly index: number; readonly question: unknown }
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
