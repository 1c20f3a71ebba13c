import { nextDeadline, type ResetPolicy } from './reset-policy.ts';
import { isParked, type Session, type SessionWithTurns } from './session.ts';

export interface Deadline {
  readonly expiresAt: number | null;
  readonly expiresCause: 'idle' | 'daily' | null;
}

const NEVER: Deadline = { expiresAt: null, expiresCause: null };

/**
 * When a session expires if nobody writes. A queued or running turn and a live background process hold the deadline
 * off altogether; a cut turn holds it for the resume window, so that an acknowledged message is never discarded by
 * an expiry. What an operator parked does not expire before it is released. Attached sessions end with their owner, not by the clock.
 */
export function deadlineOf(loaded: SessionWithTurns, policy: ResetPolicy, resumeWindowMs: number): Deadline {
  const { session, turns } = loaded;
  if (session.attached || session.state === 'ended' || isParked(session) || isHeld(session, loaded)) return NEVER;
  const next = nextDeadline(policy, session.lastActivityAt);
  if (next === null) return NEVER;
  const waitsForResume = session.resumeAt !== null && turns.some((turn) => turn.state === 'cut');
  const earliest = waitsForResume ? (session.resumeAt ?? 0) + resumeWindowMs : 0;
  return { expiresAt: Math.max(next.at, earliest), expiresCause: next.cause };
}

/** When to look at a session next, given when that was planned before; see `Session.checkAt`. */
export function checkTime(session: Session, expiresAt: number | null): number | null {
  if (session.state === 'ended') return null;
  if (expiresAt === null) return session.checkAt;
  return session.checkAt === null ? expiresAt : Math.min(session.checkAt, expiresAt);
}

function isHeld(session: Session, loaded: SessionWithTurns): boolean {
  return session.background > 0 || loaded.turns.some((turn) => turn.state === 'queued' || turn.state === 'running');
}
