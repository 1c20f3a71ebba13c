import type { Origin, Session } from './session.ts';
import type { Actor, EndCause, EndReason, ResumeReason, SuspendReason, Trigger, TurnOutcome } from './states.ts';

/** What a session is told when it starts. */
type StartFacts = Pick<
  Session,
  'key' | 'kind' | 'platform' | 'userId' | 'origin' | 'parentId' | 'lineage' | 'attached' | 'title'
>;

export interface StartCommand extends StartFacts {
  readonly name: 'start';
  readonly sessionId: string;
  /** The session a user asked to replace: announces `session:reset` after the start. */
  readonly resetOf: string | null;
}

export interface TokenUsage {
  readonly input: number;
  readonly output: number;
}

/** How a turn came out, as its `agent:end` tells it. */
export interface TurnResult {
  readonly outcome: TurnOutcome;
  readonly response: string | null;
  readonly model: string | null;
  readonly usage: TokenUsage | null;
}

/**
 * Everything that can happen to a session. There is no other way to change one.
 * `epoch` is the fence: given, the command applies only while the caller still owns the session at that epoch.
 */
export type Command =
  | StartCommand
  | { readonly name: 'touch'; readonly by: Actor }
  | {
      readonly name: 'enqueue';
      readonly turnId: string;
      readonly text: string;
      readonly by: Actor;
      readonly userId: string | null;
      readonly userName: string | null;
      /** Where it came from: for a session that does not know its own place, because its row was damaged. */
      readonly origin: Origin;
    }
  | { readonly name: 'begin'; readonly turnId: string }
  /** Transcript rows were added; they are written in the same transaction. */
  | { readonly name: 'append'; readonly messages: number; readonly epoch: number | null }
  | ({ readonly name: 'finish'; readonly turnId: string; readonly epoch: number | null } & TurnResult)
  | { readonly name: 'interrupt'; readonly reason: ResumeReason; readonly epoch: number | null }
  | { readonly name: 'suspend'; readonly reason: SuspendReason }
  /** An operator releases a parked session: it is open again, and what waited in it goes on. */
  | { readonly name: 'reopen' }
  | { readonly name: 'background'; readonly running: number; readonly epoch: number | null }
  /** The owner is dead or gives the session up: nobody holds it, and its background processes are gone. */
  | { readonly name: 'release' }
  | {
      readonly name: 'compress';
      readonly beforeTokens: number;
      readonly afterTokens: number;
      readonly count: number;
      readonly epoch: number | null;
    }
  | { readonly name: 'title'; readonly title: string | null }
  | { readonly name: 'note'; readonly command: string; readonly args: string }
  | {
      readonly name: 'end';
      readonly reason: EndReason;
      readonly cause: EndCause | null;
      readonly trigger: Trigger;
      readonly successorId: string | null;
      readonly epoch: number | null;
    };
