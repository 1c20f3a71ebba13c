import type { z } from 'zod';
import type { JobService } from '../cron/job-service.ts';
import type { JobTarget } from '../cron/job-store.ts';
import type { ApprovalAnswer, TurnOutcome, TurnState } from '../lifecycle/states.ts';
import type { ShownApproval } from '../people/approval-view.ts';
import type { TurnActivity, TurnEvent } from '../turns/turn-event.ts';
import type { Figures } from './figures.ts';
import type { ReadinessSchema } from './schemas.ts';

/** Who says something over HTTP. */
export interface ChatCaller {
  /** Idempotency keys of different credentials never meet. */
  readonly credential: string;
  /** Whose conversations it names; null for those that are nobody's in particular. */
  readonly namespace: string | null;
  /** May do what concerns more than the conversation. */
  readonly admin: boolean;
}

/** Something a client says over HTTP: text for the agent, or a slash command. */
export interface ChatRequest {
  readonly text: string;
  /** Names a lasting conversation; null for a one-shot session that ends after the reply. */
  readonly conversation: string | null;
  readonly platform: 'api' | 'web';
  readonly userId: string | null;
  /** The same key again is the same request again; null when the client gave none. */
  readonly idempotencyKey: string | null;
  readonly caller: ChatCaller;
  readonly model: string | null;
  /**
   * What was said before, for clients that keep the transcript themselves (OpenAI-compatible, without a conversation). A
   * lasting conversation has its own.
   */
  readonly history: readonly PastMessage[];
}

export interface PastMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly text: string;
}

/** How what was said came out. */
export interface Reply {
  readonly sessionId: string;
  /** Null for a slash command: it is no turn. */
  readonly turnId: string | null;
  readonly text: string;
  readonly outcome: TurnOutcome;
  /** The code of what went wrong, for `failed` and `timeout`. */
  readonly errorCode: string | null;
  readonly model: string | null;
  readonly usage: { readonly input: number; readonly output: number } | null;
}

/** A request the gateway has taken: durable from now on, whether or not the client stays to hear the end. */
export interface AcceptedTurn {
  readonly sessionId: string;
  readonly turnId: string | null;
  readonly reply: Promise<Reply>;
  /** What happens in the turn: first what was so far, then as it happens. Null for a slash command, which is none. */
  readonly events: {
    /** Returns the function that stops it. */
    watch(listener: (event: TurnEvent) => void): () => void;
  } | null;
}

/** A turn as far as it is. */
export interface ReadTurn {
  readonly turnId: string;
  readonly sessionId: string;
  readonly state: TurnState;
  /** Null until it is over. */
  readonly reply: Reply | null;
}

/** How the gateway stands, as `/ready` shows it: nothing secret. */
export type Readiness = z.output<typeof ReadinessSchema>;

/** What HTTP needs of the gateway beside the store. */
export interface ApiBackend {
  /** Throws `draining`, `idempotency_conflict`, `message_too_large` and the like; resolves once it is durable. */
  receive(request: ChatRequest): Promise<AcceptedTurn>;
  models(): Promise<readonly string[]>;
  /** Turns by their ids, wherever they run. All throw `turn_not_found`. */
  readonly turns: {
    find(turnId: string): Promise<ReadTurn>;
    /** As it is when it is over, or after so long. */
    wait(turnId: string, ms: number, signal: AbortSignal): Promise<ReadTurn>;
    /** From its beginning, as if it had just been received. */
    follow(turnId: string): Promise<AcceptedTurn>;
    stop(turnId: string): Promise<ReadTurn>;
  };
  readonly approvals: {
    waiting(): Promise<readonly ShownApproval[]>;
    /** Throws `approval_not_found`, `approval_over`, `approval_forbidden`. */
    answer(id: string, decision: ApprovalAnswer, reason: string | null): Promise<ShownApproval>;
  };
  /** The name of the configured model. */
  readonly model: string;
  readiness(): Promise<Readiness>;
  /** The same without looking at anything. */
  state(): Readiness['state'];
  /** What is done at its time. */
  readonly jobs: {
    readonly service: JobService;
    /** Where results go, by its name. Throws `target_unknown`. */
    readonly target: (text: string) => Promise<JobTarget>;
  };
  /** What a platform brings or asks over HTTP, and what it is answered; null where there is no such platform. */
  receiveFromPlatform(name: string, request: PlatformRequest): Promise<PlatformAnswer | null>;
  drain(): Promise<void>;
  undrain(): Promise<void>;
  /** How many turns run and wait, and other gauges, by metric name without what all of them begin with. */
  gauges(): Promise<Readonly<Record<string, number>>>;
  /** What is measured as it happens. */
  readonly figures?: Figures;
  /** How the chat platforms stand. */
  platforms?(): readonly PlatformStanding[];
  /** What a running turn of this gateway does just now; null when it is not here. Without it all of them think. */
  turnActivity?(sessionId: string): TurnActivity | null;
}

/** How an account of a platform stands. */
export interface PlatformStanding {
  /** With its account: `telegram`, `telegram@work`. */
  readonly name: string;
  readonly phase: string;
  readonly problem: string | null;
  /** Epoch milliseconds. */
  readonly lastSuccessAt: number | null;
}

/** As it came. Header names in lower case. */
export interface PlatformRequest {
  readonly method: string;
  /** What stands behind the name of the platform: an account, a route, or nothing. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface PlatformAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}
