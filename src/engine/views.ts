import type { Session } from '../lifecycle/session.ts';
import type { Message } from '../store/transactions/messages.ts';
import type { SequencedEvent, Stats } from '../store/transactions/reading.ts';

/** What the outside sees: the shapes of HTTP and of `--json`. Times are ISO 8601 UTC. */

export function sessionView(session: Session) {
  return {
    id: session.id,
    key: session.key,
    kind: session.kind,
    platform: session.platform,
    user_id: session.userId,
    title: session.title,
    state: session.state,
    started_at: isoTime(session.startedAt),
    last_activity_at: isoTime(session.lastActivityAt),
    expires_at: isoTime(session.expiresAt),
    ended_at: isoTime(session.endedAt),
    end_reason: session.endReason,
    end_cause: session.endCause,
    parent_id: session.parentId,
    lineage: session.lineage,
    message_count: session.messageCount,
    owner: session.owner,
    last_heartbeat_at: isoTime(session.lastHeartbeatAt),
    resume_reason: session.resumeReason,
    suspend_reason: session.suspendReason,
    tokens: { input: session.tokensIn, output: session.tokensOut },
  };
}

export function messageView(message: Message) {
  return {
    role: message.role,
    text: message.text,
    at: isoTime(message.at),
    turn_id: message.turnId,
    session_id: message.sessionId,
    position: message.position,
    data: message.data,
  };
}

export function eventView({ seq, event }: SequencedEvent) {
  const { id, ...rest } = event;
  return { id, seq, ...rest };
}

export function statsView(stats: Stats) {
  return {
    total: stats.total,
    open: stats.open,
    open_owned: stats.openOwned,
    open_unowned: stats.openUnowned,
    ended: stats.ended,
  };
}

export function isoTime(at: number): string;
export function isoTime(at: number | null): string | null;
export function isoTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
