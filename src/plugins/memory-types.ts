import type { Session } from '../lifecycle/session.ts';
import type { EndCause, EndReason, Lineage, SessionKind } from '../lifecycle/states.ts';
import type { Message } from '../store/transactions/messages.ts';

/** On whose behalf something is remembered or recalled. */
export interface MemoryScope {
  readonly platform: string;
  readonly userId: string | null;
  readonly sessionKey: string;
}

export interface MemoryTurn {
  readonly scope: MemoryScope;
  readonly sessionId: string;
  readonly turnId: string;
  /** What the person wrote. */
  readonly text: string;
}

/** A turn that was answered. */
export interface MemoryFinishedTurn extends MemoryTurn {
  /** The same each time it comes. */
  readonly eventId: string;
  readonly response: string;
}

export interface MemoryEndedSession {
  readonly session: Pick<Session, 'id' | 'key' | 'kind' | 'platform' | 'userId'> & {
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
  /** Everything that was said, oldest first, behind the transcripts of the sessions this one continues. */
  readonly messages: readonly Message[];
}

/** A conversation goes on in another session. */
export interface MemorySessionSwitch {
  readonly scope: MemoryScope;
  readonly eventId: string;
  readonly from: string;
  readonly to: string;
  readonly lineage: Exclude<Lineage, 'spawn'>;
}

export interface PluginMemoryTool {
  readonly name: string;
  readonly description: string;
  /** A JSON schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  run(
    args: unknown,
    context: { readonly scope: MemoryScope; readonly sessionId: string; readonly signal: AbortSignal },
  ): Promise<string>;
}

/**
 * What remembers beyond a session; everything but the name is optional. docs/memory.md tells when each part is called.
 * `syncTurn`, `onSessionEnd` and `onSessionSwitch` come from the log: at least once, in order per conversation.
 */
export interface PluginMemoryProvider {
  readonly name: string;
  /** The kinds of session it wants to hear of; all but `cron` and `webhook` unless it says so. */
  readonly kinds?: readonly SessionKind[];
  /** Before anything else, in every thread the plugin is loaded in. */
  initialize?(context: { readonly folder: string }, signal: AbortSignal): unknown;
  systemPromptBlock?(scope: MemoryScope, signal: AbortSignal): MaybeText;
  prefetch?(text: string, scope: MemoryScope, signal: AbortSignal): MaybeText;
  onTurnStart?(turn: MemoryTurn, signal: AbortSignal): unknown;
  syncTurn?(turn: MemoryFinishedTurn, signal: AbortSignal): unknown;
  onPreCompress?(messages: readonly Message[], scope: MemoryScope, signal: AbortSignal): MaybeText;
  onSessionEnd?(ended: MemoryEndedSession, signal: AbortSignal): unknown;
  onSessionSwitch?(change: MemorySessionSwitch, signal: AbortSignal): unknown;
  remember?(fact: string, scope: MemoryScope, signal: AbortSignal): unknown;
  readonly tools?: readonly PluginMemoryTool[];
  shutdown?(): unknown;
}

type MaybeText = Promise<string | null> | string | null;
