import type { CommandFields, EventFields, FixedEventType, MoiraiEvent } from '../../lifecycle/events.ts';
import type { SessionKind } from '../../lifecycle/states.ts';
import type { MemoryProvider as PluginMemoryProvider } from '../../memory/provider.ts';
import type { ChatType } from '../../platforms/platform.ts';

export type { MoiraiEvent } from '../../lifecycle/events.ts';
/** The contract of memory, under the names that authors of plugins know it by. */
export type {
  EndedSession as MemoryEndedSession,
  FinishedTurn as MemoryFinishedTurn,
  MemoryProvider as PluginMemoryProvider,
  MemoryScope,
  MemoryTool as PluginMemoryTool,
  SessionSwitch as MemorySessionSwitch,
  TurnStart as MemoryTurn,
} from '../../memory/provider.ts';
export type { ChatType } from '../../platforms/platform.ts';

/** What a plugin's module exports, by default or as a named `setup`. */
export interface PluginDefinition {
  /** Called once in each process the plugin is loaded in. What it registers is what the plugin offers. */
  setup(ctx: PluginContext): unknown;
}

/** Says what a plugin is; it only helps an editor to know the types. */
export function definePlugin(definition: PluginDefinition): PluginDefinition {
  return definition;
}

/**
 * Thrown by an observer or by a memory provider, says that what it needs is down: the event waits and comes again, and
 * no attempt is counted.
 */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
  readonly code = 'subscriber_unavailable';
}

/** What `setup` is given. Everything is registered in `setup`; later it is refused. */
export interface PluginContext {
  readonly name: string;
  /** The plugin's own folder. */
  readonly folder: string;
  /** The gateway's home. */
  readonly home: string;
  /** The `config` of its plugin.yaml; empty when there is none. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Writes to the gateway's log, with the plugin's name on every line. */
  readonly log: PluginLog;
  /**
   * Hears of events: of a type, of a `prefix:*`, of `*`, or by one of the names of `NamedEvents`. At least once, in order
   * per conversation; what throws comes again. `post_tool_call` alone is best effort.
   */
  on<Name extends ObservedName>(name: Name, hear: (event: ObservedEvent<Name>, signal: AbortSignal) => unknown): void;
  /** Is asked before something happens, and may change it or keep it from happening. */
  gate<Name extends GateName>(name: Name, answer: GateFunction<Name>, options?: GateOptions): void;
  /** Gives the model something to do. */
  tool<Args>(tool: PluginToolDefinition<Args>): void;
  /** Gives people a slash command. */
  command(command: PluginCommandDefinition): void;
  /** Remembers beyond sessions; it is used when `memory.provider` names it. */
  memoryProvider(provider: PluginMemoryProvider): void;
  /** A way to reach people. */
  platform(platform: PluginPlatformDefinition): void;
  /** Called when this process is about to end: after a change, and when the gateway stops. Not when it dies. */
  onUnload(leave: () => unknown): void;
}

/** A hundred lines a second at most; the rest is counted and left out. */
export interface PluginLog {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** What is heard under a name that is not an event's type. */
export interface NamedEvents {
  on_session_start: MoiraiEvent & EventFields['session:start'];
  /**
   * A session is over (`session:end`), with its own id; or, with the reason `shutdown`, the gateway stopped in the middle
   * of a turn of it, and it goes on after the restart.
   */
  on_session_finalize: MoiraiEvent & { readonly reason: EventFields['session:end']['reason'] | 'shutdown' };
  /** A person asked for a fresh session: `session_id` is the new one. Comes behind `on_session_finalize` of the old. */
  on_session_reset: MoiraiEvent & EventFields['session:reset'];
  /** A turn was answered. */
  post_llm_call: MoiraiEvent & EventFields['agent:end'];
  /** A tool was run. Not from the log: it is told once, while it happens, or not at all. */
  post_tool_call: FinishedToolCall;
}

export type ObservedName = keyof NamedEvents | FixedEventType | `${string}:*` | `command:${string}` | '*';

/** What is heard under a name. */
export type ObservedEvent<Name extends string> = Name extends keyof NamedEvents
  ? NamedEvents[Name]
  : Name extends FixedEventType
    ? MoiraiEvent & EventFields[Name]
    : Name extends `command:${string}`
      ? MoiraiEvent & CommandFields
      : MoiraiEvent;

/** A person wrote a message. */
export interface DispatchQuestion {
  readonly text: string;
  readonly platform: string;
  readonly user_id: string | null;
  readonly session_key: string;
  readonly kind: SessionKind;
}

/** `skip`: the agent never sees it. `rewrite`: it sees this instead. */
export type DispatchAnswer =
  | { readonly action: 'skip'; readonly reason?: string }
  | { readonly action: 'rewrite'; readonly text: string };

/** A turn is about to be worked on. */
export interface TurnQuestion {
  readonly session_id: string;
  readonly session_key: string;
  readonly turn_id: string;
  readonly text: string;
  readonly platform: string;
  readonly user_id: string | null;
  readonly model: string | null;
}

/** Added to what the model reads in this turn. */
export interface TurnAnswer {
  readonly context: string;
}

/** The model wants to use a tool. */
export interface ToolQuestion {
  readonly session_id: string;
  readonly turn_id: string;
  readonly tool: string;
  readonly args: unknown;
  readonly tool_call_id: string;
  readonly platform: string;
  readonly user_id: string | null;
}

/** `block`: it is not run, and the model is told why. `rewrite`: it is run with these arguments. */
export type ToolAnswer =
  | { readonly action: 'block'; readonly reason: string }
  | { readonly action: 'rewrite'; readonly args: unknown };

export interface ToolOutcome {
  readonly ok: boolean;
  /** What the model read. */
  readonly result: string;
  readonly duration_ms: number;
}

export type FinishedToolCall = ToolQuestion & ToolOutcome;

/** What each gate is asked, and what it may answer. */
export interface Gates {
  pre_gateway_dispatch: { readonly question: DispatchQuestion; readonly answer: DispatchAnswer };
  pre_llm_call: { readonly question: TurnQuestion; readonly answer: TurnAnswer };
  pre_tool_call: { readonly question: ToolQuestion; readonly answer: ToolAnswer };
}

export type GateName = keyof Gates;

/** Nothing, as an answer, lets pass what was asked about. */
export type GateFunction<Name extends GateName> = (
  question: Gates[Name]['question'],
  signal: AbortSignal,
) => MaybeLater<Gates[Name]['answer'] | null | undefined>;

type MaybeLater<T> = T | Promise<T>;

export interface GateOptions {
  /** In milliseconds; `gates.timeout` of plugin.yaml, or 2000, if not given. */
  readonly timeout?: number;
  /** When the gate throws, is late, or its process is away: `open` (the default) lets pass, `closed` does not. */
  readonly onFailure?: 'open' | 'closed';
}

export interface PluginToolContext {
  readonly sessionId: string;
  readonly turnId: string;
  readonly platform: string;
  readonly userId: string | null;
  /** Aborts with the turn. */
  readonly signal: AbortSignal;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Something the model may do. */
export interface PluginToolDefinition<Args = unknown> {
  readonly name: string;
  readonly description: string;
  /** A JSON schema of the arguments, or something that can make one. What the model sends is not checked against it. */
  readonly inputSchema: JsonSchema | { toJSONSchema(): unknown };
  /** Changes nothing, so that several calls of one step may run at the same time. */
  readonly together?: boolean;
  /**
   * What a person has to allow first, in one line; `true` for its name. Null, false and nothing mean that nobody is
   * asked. A function that fails or is late counts as true.
   */
  readonly dangerous?: boolean | string | ((args: Args) => MaybeLater<boolean | string | null>);
  /** What the model reads: a text; anything else is shown as JSON. Throws when it failed, with a message for the model. */
  run(args: Args, context: PluginToolContext): unknown;
}

/** One use of a command. */
export interface PluginCommandCall {
  readonly name: string;
  /** Behind the name, trimmed. */
  readonly args: string;
  readonly platform: string;
  readonly user_id: string | null;
  readonly session_key: string;
  /** The open session of the conversation. */
  readonly session_id: string | null;
}

export interface PluginCommandDefinition {
  readonly name: string;
  /** Behind the name, as help shows it. */
  readonly takes?: string;
  readonly summary: string;
  /** What the person reads. */
  run(call: PluginCommandCall, signal: AbortSignal): MaybeLater<string>;
}

/** A message from a person, in the platform's own ids. */
export interface InboxMessage {
  readonly chat_id: string;
  /** `dm` if not given. */
  readonly chat_type?: ChatType;
  readonly thread_id?: string | null;
  readonly user_id: string;
  readonly user_name?: string | null;
  readonly text: string;
  /** Within its chat; the same again is the same message again, which is taken once. */
  readonly message_id: string;
  /** It is said to the agent. True in a `dm` and false elsewhere, if not given. */
  readonly addressed?: boolean;
}

export interface Inbox {
  /**
   * Resolves when the message is durable: only then tell the platform that you have it. Throws when it was not taken;
   * then give it again later.
   */
  receive(message: InboxMessage): Promise<void>;
}

/** Where a text is to be sent. */
export interface SendTarget {
  readonly chat_id: string;
  readonly chat_type: ChatType;
  readonly thread_id: string | null;
}

export interface PluginPlatformDefinition {
  readonly name: string;
  /** The longest text of one message, in UTF-16 units; 4000 if not given. Longer ones are split. */
  readonly maxText?: number;
  /** It shows Markdown as such. */
  readonly markdown?: boolean;
  /** Begins to listen. May go on for as long as the signal is not aborted; when it throws, the plugin is started again. */
  start?(inbox: Inbox, signal: AbortSignal): unknown;
  /** Sends one text. Resolves when the platform has taken it, with the message's id if it has one; what throws is tried again. */
  send(target: SendTarget, text: string, signal: AbortSignal): unknown;
  stop?(): unknown;
}
