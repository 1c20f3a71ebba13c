import type { TokenUsage } from '../lifecycle/commands.ts';
import type { Message, MessageToAppend } from '../store/transactions/messages.ts';

/** One turn as the agent sees it. */
export interface TurnTask {
  readonly sessionId: string;
  readonly turnId: string;
  readonly platform: string;
  readonly userId: string | null;
  /** Everything said so far, oldest first, behind the transcripts of the sessions this one continues. */
  readonly transcript: readonly Message[];
  /** What the person wrote; null when the turn goes on with what the transcript ends with. */
  readonly text: string | null;
  /** What the agent has to know about how this turn came to be; goes with the text, never as a message of its own. */
  readonly note: string | null;
  /** The model this conversation asked for; null for the configured one. */
  readonly model: string | null;
  /** What the model is told first beside its instructions; the same in every turn of a session. */
  readonly about?: string | null;
  /** When the session started, if the agent is to know the day. */
  readonly startedAt?: number;
  readonly signal: AbortSignal;
  readonly context: TurnContext;
}

/** What the agent may ask and tell while it works. */
export interface TurnContext {
  /** Makes a finished step durable. The agent goes on only after that: a tool is run behind the row that calls it. */
  keep(messages: readonly MessageToAppend[]): Promise<void>;
  /** What people said meanwhile and want taken into account now: rows that are in the transcript already. */
  takeSteering(): Promise<readonly MessageToAppend[]>;
  /** Where everybody who looks on hears of it. */
  readonly channel: { publish(event: StepEvent): void };
  /** Whether a tool may be run at all, and with what: asked before any person is. */
  mayRun?(use: ToolUse): Promise<ToolPermission>;
  /** Reports what came of it. The turn does not wait for the listeners. */
  ran?(use: ToolUse, result: ToolResult): void;
  /** Whether a person allows this. A deadline that passes is a no. */
  approve(request: ApprovalRequest): Promise<Approval>;
  /** What a summary of these rows must not lose; null for nothing. */
  beforeSummary?(rows: readonly SummarisedRow[]): Promise<string | null>;
}

/** A row may have been written in this very turn: then it has not been read back, and has no time. */
export type SummarisedRow = Omit<Message, 'at'> & Partial<Pick<Message, 'at'>>;

/** A conversation that the model is to think about, beside its turns. */
export type TranscriptTask = Pick<TurnTask, 'sessionId' | 'transcript' | 'model' | 'about' | 'startedAt' | 'signal'>;

/** What the agent does in a turn, as it does it. */
export type StepEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | ToolEvent
  /** A step of the model is complete: it calls these tools next. */
  | { readonly type: 'step'; readonly iteration: number; readonly tools: readonly string[] };

export type ToolEvent = { readonly type: 'tool'; readonly id: string; readonly name: string } & (
  | { readonly state: 'start'; readonly args: unknown }
  /** `output` is the beginning of what the model reads of it. */
  | { readonly state: 'end'; readonly ok: boolean; readonly output?: string }
);

export interface ToolUse {
  readonly id: string;
  readonly tool: string;
  readonly args: unknown;
}

export interface ToolResult {
  readonly ok: boolean;
  /** What the model reads. */
  readonly text: string;
  readonly ms: number;
}

export type ToolPermission =
  | { readonly allowed: true; readonly args: unknown }
  | { readonly allowed: false; readonly reason: string };

export interface ApprovalRequest {
  readonly tool: string;
  /** What would be done, in one line a person can judge. */
  readonly action: string;
  /** What the tool would be called with: another question is another one, whatever its line says. */
  readonly args?: unknown;
}

export type Approval = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

/** What came of a turn. Rows not yet kept are in `messages`, the reply among them. */
export interface TurnReport {
  readonly text: string;
  readonly messages: readonly MessageToAppend[];
  readonly model: string;
  readonly usage: TokenUsage;
  /** The context was summarised on the way. */
  readonly compressed: Compression | null;
}

export interface Compression {
  readonly beforeTokens: number;
  readonly afterTokens: number;
  /** How many messages the summary stands for. */
  readonly count: number;
}

export interface Picture {
  readonly bytes: Uint8Array;
  readonly mime: string;
}

/**
 * Runs turns. Throws `MoiraiError` with a code a person can act on (`model_*`, `agent_*`) when the turn fails; the abort of
 * the signal rejects with the signal's reason.
 */
export interface AgentRunner {
  /** Fit to be shown: which model answers. */
  readonly description: string;
  /** The name of the model that answers unless another is asked for; null when the server decides. */
  readonly model: string | null;
  run(task: TurnTask): Promise<TurnReport>;
  /** Summarises now, on request; null when there is nothing to gain. The summary is kept through the context. */
  compress(task: Omit<TurnTask, 'text' | 'note'>): Promise<Compression | null>;
  /**
   * Asks the model something about a conversation, behind all that it was sent there, so that the server has read nearly
   * all of it already. Runs no tool and keeps nothing. Null when there is nothing to ask about, no room to ask, or nobody.
   */
  askAbout(task: TranscriptTask, question: string): Promise<string | null>;
  /** What a picture shows, in a sentence; null when the model cannot see, or does not say. */
  describe?(picture: Picture, signal: AbortSignal): Promise<string | null>;
  /** The models a conversation may ask for. */
  models(): Promise<readonly string[]>;
  /** A session ended: closes what its tools hold. */
  forget(sessionId: string): Promise<void>;
  close(): Promise<void>;
}
