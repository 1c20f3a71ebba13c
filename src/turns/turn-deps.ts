import type {
  AgentRunner,
  Approval,
  ApprovalRequest,
  SummarisedRow,
  ToolPermission,
  ToolResult,
  ToolUse,
  TurnReport,
} from '../agent/runner.ts';
import type { Engine } from '../engine/engine.ts';
import type { Session, Turn } from '../lifecycle/session.ts';
import type { ResumeReason } from '../lifecycle/states.ts';
import type { Logger } from '../log/logger.ts';
import type { Timers } from '../queue/timers.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import type { Message, MessageToAppend } from '../store/transactions/messages.ts';
import type { Elapsed } from './observer.ts';
import type { Notice } from './resumed-turn.ts';
import type { TurnRun } from './turn-run.ts';

/** Why a turn is stopped before its end. */
export type StopReason =
  /** Somebody said so, or wrote something that takes its place: it is over. */
  | { readonly type: 'told'; readonly by: 'stop' | 'new' | 'message' }
  /** This process stops: the turn is cut and goes on in the next one. */
  | { readonly type: 'cut'; readonly reason: ResumeReason }
  | { readonly type: 'timeout' }
  /** The session ended, or is somebody else's: nothing is left to be written. */
  | { readonly type: 'lost' };

export type ToldStop = Extract<StopReason, { type: 'told' }>;

/** What plugins have to say to a turn. */
export interface TurnPlugins {
  /** What the model reads beside a person's words; null for nothing. */
  before(run: TurnRun, text: string, model: string | null): Promise<string | null>;
  mayRun(run: TurnRun, use: ToolUse): Promise<ToolPermission>;
  ran(run: TurnRun, use: ToolUse, result: ToolResult): void;
}

/** What memory has to say to a turn. */
export interface TurnMemory {
  /** What the model is told of memory in this session; `keep` makes it part of the transcript. */
  about(
    session: Session,
    transcript: readonly Message[],
    keep: (row: MessageToAppend) => Promise<void>,
  ): Promise<string | null>;
  /** What is remembered that matters for a person's words, and is not in the transcript yet. */
  recall(
    session: Session,
    turn: { readonly turnId: string; readonly text: string },
    transcript: readonly Message[],
  ): Promise<string | null>;
  /** What a summary of these rows must not lose. */
  beforeSummary(session: Session, rows: readonly SummarisedRow[]): Promise<string | null>;
}

/** What a turn needs of the gateway around it. */
export interface TurnRunDeps {
  readonly engine: Engine;
  readonly runner: AgentRunner;
  readonly timers: Timers;
  readonly log: Logger;
  /** No progress for this long ends a turn. */
  readonly timeoutMs: number;
  readonly transcript: (session: Session) => Promise<readonly Message[]>;
  /** A message as the agent reads it: what came with it is fetched now. */
  readonly textWithFiles: (session: Session, turnId: string, text: string, signal: AbortSignal) => Promise<string>;
  readonly memory: TurnMemory;
  /** The outbox rows for a reply, or for what is said instead of one; none where it is fetched, not sent. */
  readonly deliveries: (run: TurnRun, text: string, report: TurnReport | null) => Promise<readonly DeliveryToMake[]>;
  readonly plugins: TurnPlugins;
  readonly approve: (run: TurnRun, request: ApprovalRequest) => Promise<Approval>;
  /** Takes what waits behind this turn and is meant for it into the transcript; each is over once it is taken. */
  readonly takeSteering: (run: TurnRun) => Promise<readonly MessageToAppend[]>;
}

export type BusyMode = 'queue' | 'interrupt' | 'steer';

export interface TurnsOptions {
  readonly engine: Engine;
  readonly timers: Timers;
  readonly log: Logger;
  readonly maxConcurrent: number;
  readonly busyMode: () => BusyMode;
  /** Whether who wrote it may still talk: asked before a turn begins that waited, or was cut. */
  readonly admits: (session: Session, turn: Turn) => Promise<boolean>;
  /** A message is durable, and was not before. */
  readonly received: (session: Session, turn: Turn, elapsed: Elapsed) => void;
  /** A message waits in a session that an operator parked. */
  readonly parked: (session: Session, turn: Turn) => Promise<void>;
  /** What is said to a conversation beside its replies. */
  readonly notice: Notice;
  /** A turn begins to run here: whoever shows or measures it subscribes to its channel. */
  readonly started: (run: TurnRun) => void;
  /** What a run needs beside what this class gives it. */
  readonly runDeps: Omit<TurnRunDeps, 'takeSteering' | 'engine' | 'timers' | 'log'>;
}

/** How a message is taken in. */
export interface Receiving {
  readonly mode?: BusyMode | undefined;
  /** Begins whatever else runs. */
  readonly uncapped?: boolean;
  /** Wait so long for more of the same person: chat clients send one message in pieces. */
  readonly settleMs?: number | undefined;
}
