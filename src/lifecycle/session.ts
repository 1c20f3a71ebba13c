import type {
  Actor,
  EndCause,
  EndReason,
  Lineage,
  ResumeReason,
  SessionKind,
  SessionState,
  SuspendReason,
  TurnOutcome,
  TurnState,
} from './states.ts';

/** Where replies go and who is there; opaque to the lifecycle. */
export type Origin = Readonly<Record<string, unknown>> | null;

/** One episode of a conversation. Times are epoch milliseconds. */
export interface Session {
  readonly id: string;
  readonly key: string;
  readonly kind: SessionKind;
  readonly platform: string;
  readonly userId: string | null;
  readonly origin: Origin;
  readonly parentId: string | null;
  readonly lineage: Lineage | null;
  /** Dies with its owner: without a live one it is reaped. */
  readonly attached: boolean;
  readonly startedAt: number;

  readonly title: string | null;
  readonly state: SessionState;
  /** The user's clock: the only one that moves a deadline. */
  readonly lastActivityAt: number;
  /** The machine's clock: turns, cron, wakes. Shown, never used for expiry. */
  readonly lastSystemAt: number | null;
  /** Null while something holds the deadline off, and for sessions that have none. */
  readonly expiresAt: number | null;
  readonly expiresCause: 'idle' | 'daily' | null;
  /**
   * When the watcher looks at the session: never after `expiresAt`, often before it. It moves only when it must, since
   * it is what sessions are sorted by: one that is active all day is looked at once a day, not sorted at each message.
   */
  readonly checkAt: number | null;
  readonly endedAt: number | null;
  readonly endReason: EndReason | null;
  readonly endCause: EndCause | null;

  readonly messageCount: number;
  readonly tokensIn: number;
  readonly tokensOut: number;

  /** The instance that runs its turn, or that it is attached to. */
  readonly owner: string | null;
  /** Rises with every change of hands; a write that carries an older one is refused. */
  readonly epoch: number;
  readonly lastHeartbeatAt: number | null;

  readonly resumeReason: ResumeReason | null;
  readonly resumeAt: number | null;
  /** Why it is `suspended`; null in every other state. */
  readonly suspendReason: SuspendReason | null;
  /** Interruptions in a row; a finished turn sets it back to 0. */
  readonly cuts: number;
  /** Live background processes: each holds the deadline off. */
  readonly background: number;

  /** The last `session_seq` given out. */
  readonly seq: number;
  /** Rises with every write: the compare-and-set of each transaction. */
  readonly version: number;
  /** The last command applied. */
  readonly lastCommand: string | null;
  /** What is kept of the last commands that may come again, newest first, with spaces between: see `markOf`. */
  readonly recentCommands: string;
}

/** Made for one request: it ends with its turn. A session that continues it is a lasting one. */
export function isOneShot({ origin, lineage }: Pick<Session, 'origin' | 'lineage'>): boolean {
  return origin?.once === true && lineage === null;
}

/**
 * A turn writes about one command a step. So many are remembered that a command whose answer got lost is still known when it
 * is repeated minutes later, while others went on with the session.
 */
const REMEMBERED_COMMANDS = 64;

/** True when the command was applied already: its answer got lost, and who gave it asks again. */
export function hasApplied(session: Session, commandId: string): boolean {
  return ` ${session.recentCommands} `.includes(` ${markOf(commandId)} `);
}

export function rememberCommand(session: Session, commandId: string): string {
  if (hasApplied(session, commandId)) return session.recentCommands;
  const marks = [markOf(commandId), ...session.recentCommands.split(' ')];
  return marks.slice(0, REMEMBERED_COMMANDS).join(' ').trimEnd();
}

/** Of an id made by chance, as much as tells it from a few others: every change of a session writes all of them. */
function markOf(commandId: string): string {
  return /^cmd_[0-9a-z]{26}$/.test(commandId) ? commandId.slice(-10) : commandId;
}

/** One inbound message, the run it causes, and its outcome. */
export interface Turn {
  readonly id: string;
  readonly sessionId: string;
  readonly by: Actor;
  /** Who wrote the message, as of its acceptance: in a shared conversation not always who started the session. */
  readonly userId: string | null;
  readonly userName: string | null;
  readonly state: TurnState;
  readonly outcome: TurnOutcome | null;
  readonly text: string;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly cuts: number;
}

/** People without an id, such as those who post as a channel, are told apart by name. */
export function isSameSpeaker(one: Turn, other: Turn): boolean {
  return one.userId === other.userId && (one.userId !== null || one.userName === other.userName);
}

/** What a transition needs to know: the session and its turns that are not over, oldest first. */
export interface SessionWithTurns {
  readonly session: Session;
  readonly turns: readonly Turn[];
}

/** Work that is done beside a conversation outlives the session that asked for it: the conversation is told of its end. */
export function outlivesParent({ origin }: Pick<Session, 'origin'>): boolean {
  return typeof origin?.background === 'string';
}

/** Parked by an operator: whatever is said in it waits until it is released, and it does not expire meanwhile. */
export function isParked(session: Pick<Session, 'state' | 'suspendReason'>): boolean {
  return session.state === 'suspended' && session.suspendReason === 'operator';
}

export function runningTurn(loaded: SessionWithTurns): Turn | undefined {
  return loaded.turns.find((turn) => turn.state === 'running');
}
