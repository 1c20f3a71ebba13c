import { isoTime } from '../../engine/views.ts';
import { formatDuration } from '../../lifecycle/duration.ts';
import type { Session } from '../../lifecycle/session.ts';
import { relativeTime, shorten } from '../print.ts';

/** Sessions as people read them. */

const TITLE_CHARS = 60;

export const SESSION_HEADINGS = ['ID', 'KIND', 'PLATFORM', 'STATE', 'STARTED', 'ENDED', 'REASON', 'MESSAGES', 'TITLE'];

export function sessionRow(session: Session): string[] {
  return [
    session.id,
    session.kind,
    session.platform,
    session.state,
    relativeTime(session.startedAt),
    session.endedAt === null ? '-' : relativeTime(session.endedAt),
    reasonOf(session) ?? '-',
    String(session.messageCount),
    shorten(session.title ?? `(${session.key})`, TITLE_CHARS),
  ];
}

/** Why it ended, with what refines it: `batch_failed (exit)`. */
export function reasonOf({ endReason, endCause }: Session): string | null {
  if (endReason === null || endCause === null) return endReason;
  return `${endReason} (${endCause})`;
}

/** Why a session is suspended and what to do about it; null when it is not. */
function parkedText({ id, suspendReason }: Session): string | null {
  if (suspendReason === null) return null;
  return suspendReason === 'operator'
    ? `by an operator; what is said waits until: moirai sessions release ${id}`
    : `its turn was interrupted too often in a row; the next message starts a new session, or: moirai sessions release ${id}`;
}

export function sessionFacts(session: Session): Record<string, string | number | null> {
  const time = (at: number | null): string | null => (at === null ? null : `${isoTime(at)} (${relativeTime(at)})`);
  const { endedAt, startedAt } = session;
  return {
    id: session.id,
    title: session.title,
    state: session.state,
    parked: parkedText(session),
    kind: session.kind,
    platform: session.platform,
    user: session.userId,
    key: session.key,
    started: time(startedAt),
    'last activity': time(session.lastActivityAt),
    expires: time(session.expiresAt),
    ended: time(endedAt),
    lasted: endedAt === null ? null : formatDuration(Math.max(0, endedAt - startedAt)),
    reason: reasonOf(session),
    owner: session.owner,
    'last heartbeat': time(session.lastHeartbeatAt),
    'waits to resume after': session.resumeReason,
    parent: session.parentId === null ? null : `${session.parentId} (${session.lineage ?? 'no lineage'})`,
    messages: session.messageCount,
    tokens: `${session.tokensIn} in, ${session.tokensOut} out`,
    origin: session.origin === null ? null : JSON.stringify(session.origin),
  };
}
