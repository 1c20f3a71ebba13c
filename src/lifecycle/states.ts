/**
 * The one table of a session's life. Nothing else in the project spells a state, a move, a kind or an end reason:
 * code, SQL constraints and docs take them from here. `docs/lifecycle.md` draws it, and a test compares the two.
 */

export const SESSION_STATES = ['open', 'resume_pending', 'suspended', 'ended'] as const;
export type SessionState = (typeof SESSION_STATES)[number];

/** Where each command leads from each state. What is not listed is an illegal move. `none` is: no session yet. */
export const MOVES = {
  none: { start: 'open' },
  open: {
    touch: 'open',
    enqueue: 'open',
    begin: 'open',
    append: 'open',
    finish: 'open',
    background: 'open',
    compress: 'open',
    title: 'open',
    note: 'open',
    release: 'open',
    interrupt: 'resume_pending',
    suspend: 'suspended',
    end: 'ended',
  },
  resume_pending: {
    touch: 'resume_pending',
    enqueue: 'resume_pending',
    begin: 'open',
    append: 'resume_pending',
    finish: 'resume_pending',
    compress: 'resume_pending',
    title: 'resume_pending',
    note: 'resume_pending',
    release: 'resume_pending',
    suspend: 'suspended',
    end: 'ended',
  },
  suspended: {
    touch: 'suspended',
    enqueue: 'suspended',
    append: 'suspended',
    finish: 'suspended',
    title: 'suspended',
    note: 'suspended',
    release: 'suspended',
    reopen: 'open',
    end: 'ended',
  },
  ended: {},
} as const satisfies Record<SessionState | 'none', Partial<Record<string, SessionState>>>;

type MovesOf<S> = S extends keyof typeof MOVES ? keyof (typeof MOVES)[S] : never;
export type CommandName = MovesOf<keyof typeof MOVES>;

/** The state a command leads to, or undefined when the move is illegal. */
export function moveFrom(state: SessionState | 'none', command: CommandName): SessionState | undefined {
  const moves: Partial<Record<CommandName, SessionState>> = MOVES[state];
  return moves[command];
}

export const SESSION_KINDS = ['chat', 'cli', 'api', 'cron', 'webhook', 'batch', 'child'] as const;
export type SessionKind = (typeof SESSION_KINDS)[number];

/**
 * Attached kinds die with the process that owns them and are reaped; durable ones outlive it.
 */
export const ATTACHED_BY_DEFAULT: Readonly<Record<SessionKind, boolean>> = {
  chat: false,
  cli: true,
  api: false,
  cron: true,
  webhook: false,
  batch: true,
  child: true,
};

export const END_REASONS = [
  'user_reset',
  'idle_expiry',
  'daily_reset',
  'auto_reset',
  'switched',
  'branched',
  'cli_close',
  'api_close',
  'admin_close',
  'cron_complete',
  'cron_failed',
  'webhook_complete',
  'batch_complete',
  'batch_failed',
  'parent_ended',
  'reaped',
  'deleted',
] as const;
export type EndReason = (typeof END_REASONS)[number];

export const TRIGGERS = ['command', 'watcher', 'message', 'startup', 'reaper', 'api', 'cli', 'process'] as const;
export type Trigger = (typeof TRIGGERS)[number];

/** Why a message found the session it could not continue. */
export type ResetCause = 'idle' | 'daily' | 'suspended' | 'resume_expired';
/** The fixed words that may refine an end reason. */
export type EndCause = ResetCause | 'exit' | 'signal' | 'not_started';

export const LINEAGES = ['reset', 'resume', 'branch', 'spawn'] as const;
export type Lineage = (typeof LINEAGES)[number];

export const RESUME_REASONS = ['restart', 'shutdown', 'crash'] as const;
export type ResumeReason = (typeof RESUME_REASONS)[number];

/** `stuck_loop`: its turn was cut too often in a row. `operator`: somebody parked it, and what is said waits for them. */
export const SUSPEND_REASONS = ['stuck_loop', 'operator'] as const;
export type SuspendReason = (typeof SUSPEND_REASONS)[number];

/** `cut`: interrupted in the middle, waiting to be continued under the same id. */
/** What people answer when an agent asks; `expired` is what silence becomes. */
export const APPROVAL_ANSWERS = ['once', 'session', 'always', 'deny'] as const;
export type ApprovalAnswer = (typeof APPROVAL_ANSWERS)[number];
export const APPROVAL_DECISIONS = [...APPROVAL_ANSWERS, 'expired'] as const;
export type ApprovalDecision = (typeof APPROVAL_DECISIONS)[number];

export const TURN_STATES = ['queued', 'running', 'cut', 'over'] as const;
export type TurnState = (typeof TURN_STATES)[number];

export const TURN_OUTCOMES = ['done', 'failed', 'interrupted', 'timeout'] as const;
export type TurnOutcome = (typeof TURN_OUTCOMES)[number];

/** Who caused an activity: only people move a deadline. */
export type Actor = 'user' | 'system';
