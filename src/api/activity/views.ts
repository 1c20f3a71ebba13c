import { isoTime } from '../../engine/views.ts';
import type { Session } from '../../lifecycle/session.ts';
import type { Ended, TurnsUnderWay } from '../../store/transactions/activity.ts';
import type { Instance } from '../../store/transactions/liveness.ts';
import type { TurnActivity } from '../../turns/turn-event.ts';

/** What visualizers see. Times are ISO 8601 UTC. */

export const PHASES = ['idle', 'queued', 'thinking', 'tool', 'replying', 'resume_pending', 'suspended'] as const;
type Phase = (typeof PHASES)[number];

export function isAlive({ state, expired }: Instance): boolean {
  return state === 'up' && !expired;
}

/** `state` is what the gateway that answers says of itself. */
export function gatewayView(instance: Instance, self: boolean, state: string) {
  return {
    id: instance.id,
    name: instance.name,
    version: instance.version,
    host: instance.host,
    pid: instance.pid,
    state: isAlive(instance) ? (self ? state : 'up') : 'lost',
    self,
    started_at: isoTime(instance.startedAt),
    last_heartbeat_at: isoTime(instance.heartbeatAt),
    sessions: instance.owns,
  };
}

export type GatewayView = ReturnType<typeof gatewayView>;

/** Which machine it runs on, and how much it does there, is its operator's to know. */
export function withoutHost(view: GatewayView): GatewayView {
  return { ...view, host: '', pid: 0, sessions: 0 };
}

/** `doing` is known of turns of the gateway that answers; those of others think. */
export function activityView(
  session: Session,
  turns: TurnsUnderWay | undefined,
  ownerAlive: boolean,
  doing: TurnActivity | null,
) {
  const phase = phaseOf(session, turns, ownerAlive, doing?.phase ?? 'thinking');
  return {
    id: session.id,
    key: session.key,
    kind: session.kind,
    platform: session.platform,
    user: session.userId,
    title: session.title,
    state: session.state,
    phase,
    tool: phase === 'tool' ? (doing?.tool ?? null) : null,
    turn_started_at: isoTime(turns?.runningSince ?? null),
    queued: turns?.queued ?? 0,
    started_at: isoTime(session.startedAt),
    last_activity_at: isoTime(session.lastActivityAt),
    last_heartbeat_at: isoTime(session.lastHeartbeatAt),
    expires_at: isoTime(session.expiresAt),
    message_count: session.messageCount,
    tokens: { input: session.tokensIn, output: session.tokensOut },
    gateway: session.owner,
  };
}

/** A running turn whose owner is gone waits to be resumed, also before the reaper has found it. */
function phaseOf({ state }: Session, turns: TurnsUnderWay | undefined, ownerAlive: boolean, doing: Phase): Phase {
  if (state === 'suspended' || state === 'resume_pending') return state;
  if (turns === undefined) return 'idle';
  if (turns.runningSince !== null) return ownerAlive ? doing : 'resume_pending';
  return turns.queued > 0 ? 'queued' : 'idle';
}

export function endView({ id, reason, cause, at }: Ended) {
  return { id, reason, cause, at: isoTime(at) };
}
