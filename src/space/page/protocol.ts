/** What gateways say of themselves at `/v1/space/activity`; see docs/http.md. */

export const PHASES = ['idle', 'queued', 'thinking', 'tool', 'replying', 'resume_pending', 'suspended'] as const;
export type Phase = (typeof PHASES)[number];

export interface GatewayView {
  readonly id: string;
  readonly name: string | null;
  readonly version: string;
  readonly host: string;
  readonly pid: number;
  readonly state: 'starting' | 'ready' | 'draining' | 'stopped' | 'up' | 'lost';
  /** Whether it is the one that answers. */
  readonly self: boolean;
  readonly started_at: string;
  readonly last_heartbeat_at: string;
  readonly sessions: number;
}

export interface SessionView {
  readonly id: string;
  readonly key: string;
  readonly kind: string;
  readonly platform: string;
  readonly user: string | null;
  readonly title: string | null;
  readonly state: 'open' | 'resume_pending' | 'suspended';
  readonly phase: Phase;
  readonly tool: string | null;
  readonly turn_started_at: string | null;
  readonly queued: number;
  readonly started_at: string;
  readonly last_activity_at: string;
  readonly last_heartbeat_at: string | null;
  readonly expires_at: string | null;
  readonly message_count: number;
  readonly tokens: { readonly input: number; readonly output: number };
  /** The gateway that runs its turn or holds it; null while it rests. */
  readonly gateway: string | null;
}

export interface Totals {
  readonly open: number;
  /** Open sessions that nobody alive answers for: 0, or something is lost. */
  readonly unowned: number;
}

export interface Snapshot {
  readonly seq: number;
  readonly gateways: readonly GatewayView[];
  readonly sessions: readonly SessionView[];
  readonly totals: Totals;
  /** There are more open sessions than are shown. */
  readonly more: boolean;
}

export interface EndView {
  readonly id: string;
  readonly reason: string;
  readonly cause: string | null;
  readonly at: string;
}

/** What has changed since the last word. */
export interface Delta {
  readonly seq: number;
  readonly sessions: readonly SessionView[];
  readonly ended: readonly EndView[];
  /** Gone without an end that can be told of. */
  readonly removed: readonly string[];
  /** Null when they are as before. */
  readonly gateways: readonly GatewayView[] | null;
  readonly totals: Totals;
  readonly more: boolean;
}
