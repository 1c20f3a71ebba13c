import type { ResetPolicy } from './reset-policy.ts';
import { isParked, type Session } from './session.ts';
import type { ResetCause } from './states.ts';

/**
 * What a message does with the session it finds: null to continue it, or the cause for which it ends before a new
 * one starts. Precedence: parked by an operator (continue), suspended, policy deadline passed, stale resume marker, continue.
 */
export function arrive(session: Session, now: number, policy: ResetPolicy, resumeWindowMs: number): ResetCause | null {
  // Somebody parked it on purpose: the message waits for them, it does not take the session away from them.
  if (isParked(session)) return null;
  if (session.state === 'suspended') return 'suspended';
  if (session.expiresAt !== null && session.expiresAt <= now) return session.expiresCause ?? 'idle';
  const staleSince = session.resumeAt === null ? null : session.resumeAt + resumeWindowMs;
  // With mode `none` the user asked that nothing ever expires; a stale marker is no exception.
  if (session.state === 'resume_pending' && policy.mode !== 'none' && staleSince !== null && staleSince < now) {
    return 'resume_expired';
  }
  return null;
}
