import { DEFAULT_RESET_RULES, type ResetRules } from '../../src/lifecycle/reset-policy.ts';

/** Short enough that a paused process is past its lease while the run still goes on. */
export const LEASE_TTL_MS = 2000;
export const HEARTBEAT_MS = 400;

/** Sessions of `hasty` and `brisk` expire all the time, those of `forever` never; cut turns go stale quickly. */
export const RULES: ResetRules = {
  ...DEFAULT_RESET_RULES,
  reset: { ...DEFAULT_RESET_RULES.reset, mode: 'idle', idleMs: 600_000 },
  resetByPlatform: {
    hasty: { idleMs: 300 },
    brisk: { mode: 'both', idleMs: 2000 },
    forever: { mode: 'none' },
  },
  resumeWindowMs: 1500,
  stuckAfter: 3,
};

export const PLATFORMS = ['hasty', 'brisk', 'forever', 'calm'] as const;
/** Conversations that all workers write to, per platform. */
export const SHARED_CHATS = 16;

/** Who listens, and to what. How each of them misbehaves is in subscribers.ts. */
export const SUBSCRIPTIONS = {
  everything: ['*'],
  endings: ['session:*', 'command:*'],
  turns: ['agent:*', 'delivery:*', 'session:end', 'hook:failed'],
} as const satisfies Record<string, readonly string[]>;

export type SubscriberName = keyof typeof SUBSCRIPTIONS;

/** What a worker process is told when it starts. */
export interface WorkerTask {
  readonly url: string;
  /** Where its journals go. */
  readonly directory: string;
  readonly worker: number;
  /** Which process this is in the worker's place, from 1. */
  readonly incarnation: number;
  readonly seed: number;
  /** The server is crashed now and then, so it may be out of reach. */
  readonly serverCrashes: boolean;
  /** Starts no work of its own and no faults: settles and delivers what the others left. */
  readonly sweeper: boolean;
}

export type ToWorker = { readonly say: 'drain' } | { readonly say: 'stop' };
export type FromWorker = { readonly say: 'ready' } | { readonly say: 'quiet' };
