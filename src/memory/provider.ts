import type { Session } from '../lifecycle/session.ts';
import type { EndCause, EndReason, Lineage, SessionKind } from '../lifecycle/states.ts';
import type { Message } from '../store/transactions/messages.ts';

/** On whose behalf something is remembered or recalled. `ownerOf` says whose it is. */
export interface MemoryScope {
  readonly platform: string;
  readonly userId: string | null;
  readonly sessionKey: string;
}

/** What memory has to know of a session. */
export type MemorySession = Pick<Session, 'id' | 'key' | 'kind' | 'platform' | 'userId'>;

/** What a provider works with. */
export interface MemoryContext {
  /** A folder that is its own; it may not exist yet. */
  readonly folder: string;
}

export interface TurnStart {
  readonly scope: MemoryScope;
  readonly sessionId: string;
  readonly turnId: string;
  /** What the person wrote. */
  readonly text: string;
}

/** A turn that was answered. */
export interface FinishedTurn extends TurnStart {
  /** The same each time it comes. */
  readonly eventId: string;
  readonly response: string;
}

export interface EndedSession {
  readonly session: MemorySession & {
    readonly title: string | null;
    readonly startedAt: number;
    readonly endedAt: number;
    readonly parentId: string | null;
    readonly lineage: Lineage | null;
    /** It was deleted, or pruned: there is no transcript any more. */
    readonly removed: boolean;
  };
  readonly scope: MemoryScope;
  readonly reason: EndReason;
  readonly cause: EndCause | null;
  /** The same each time it comes: who must do something once, remembers it. */
  readonly eventId: string;
  /**
   * Everything that was said, oldest first, behind the transcripts of the sessions this one continues; those have another
   * `sessionId`. `spokenIn` leaves only what people and the agent said.
   */
  readonly messages: readonly Message[];
}

/** A conversation goes on in another session. */
export interface SessionSwitch {
  readonly scope: MemoryScope;
  readonly eventId: string;
  readonly from: string;
  readonly to: string;
  /** `resume` and `branch` see what was said before, `reset` does not. */
  readonly lineage: Exclude<Lineage, 'spawn'>;
}

export interface MemoryToolContext {
  readonly scope: MemoryScope;
  readonly sessionId: string;
  readonly signal: AbortSignal;
}

/** Something the model may do with its memory. */
export interface MemoryTool {
  readonly name: string;
  readonly description: string;
  /** A JSON schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** What the model reads. Throws when it failed, with a message for the model. */
  run(args: unknown, context: MemoryToolContext): Promise<string>;
}

/**
 * What remembers beyond a session. Everything but the name is optional.
 *
 * `systemPromptBlock`, `prefetch`, `onTurnStart` and `onPreCompress` are asked beside a turn: who is slow or fails is
 * left out, and is asked again later. `syncTurn`, `onSessionEnd` and `onSessionSwitch` come from the log: in order per
 * conversation, at least once, also for what happened while the provider or the gateway was down. There, throwing
 * `subscriber_unavailable`, or the error of a connection, means that it is down: it all waits. Any other error is
 * retried and then kept as a dead letter.
 */
export interface MemoryProvider {
  readonly name: string;
  /** The kinds of session it wants to hear of; all but `cron` and `webhook` unless it says so. */
  readonly kinds?: readonly SessionKind[];
  /** Before anything else, and again later if it threw. */
  initialize?(context: MemoryContext, signal: AbortSignal): unknown;
  /** What the model is told at the start of a session. It stays as it is for as long as the session lives. */
  systemPromptBlock?(scope: MemoryScope, signal: AbortSignal): MaybeText;
  /** What is remembered that matters for these words. */
  prefetch?(text: string, scope: MemoryScope, signal: AbortSignal): MaybeText;
  onTurnStart?(turn: TurnStart, signal: AbortSignal): unknown;
  syncTurn?(turn: FinishedTurn, signal: AbortSignal): unknown;
  /** What a summary of these messages must not lose. */
  onPreCompress?(messages: readonly Message[], scope: MemoryScope, signal: AbortSignal): MaybeText;
  onSessionEnd?(ended: EndedSession, signal: AbortSignal): unknown;
  onSessionSwitch?(change: SessionSwitch, signal: AbortSignal): unknown;
  /** Keeps one fact, on request. */
  remember?(fact: string, scope: MemoryScope, signal: AbortSignal): unknown;
  readonly tools?: readonly MemoryTool[];
  shutdown?(): unknown;
}

type MaybeText = Promise<string | null> | string | null;

/** What cron jobs and other programs say belongs to no person's memory. */
const UNASKED: readonly SessionKind[] = ['cron', 'webhook'];

/** Whether a provider is to hear of sessions of this kind. */
export function wants({ kinds }: Pick<MemoryProvider, 'kinds'>, kind: SessionKind): boolean {
  return kinds === undefined ? !UNASKED.includes(kind) : kinds.includes(kind);
}
