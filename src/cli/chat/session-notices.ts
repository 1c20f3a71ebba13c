import { policyFor, type ResetRules } from '../../lifecycle/reset-policy.ts';
import type { Session } from '../../lifecycle/session.ts';
import type { ResetCause } from '../../lifecycle/states.ts';
import { expiredText, rolledOverText } from '../../turns/texts.ts';

/** What to say about the end of a terminal's session; null for what its own user did. */
export function noticeOfEnd(session: Session, rules: ResetRules): string | null {
  const { id, key, endReason, endCause } = session;
  const { idleMs } = policyFor(rules, key);
  switch (endReason) {
    case 'auto_reset':
      return rolledOverText(endCause as ResetCause, idleMs, id);
    case 'idle_expiry':
    case 'daily_reset':
      return expiredText(endReason, idleMs, id);
    case 'admin_close':
    case 'api_close':
      return `This session was ended from outside (${endReason}). Your next message starts a fresh one; /resume ${id} brings this one back.`;
    default:
      return null;
  }
}
