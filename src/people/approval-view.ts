import { isoTime } from '../engine/views.ts';
import type { ApprovalRow } from './approval-store.ts';

/** Something an agent asks people to allow, and what came of it, as far as the outside sees it. */
export type ShownApproval = Pick<
  ApprovalRow,
  | 'id'
  | 'sessionId'
  | 'sessionKey'
  | 'turnId'
  | 'tool'
  | 'summary'
  | 'askedAt'
  | 'expiresAt'
  | 'decision'
  | 'answeredBy'
>;

/** The shape of HTTP and of `--json`. */
export function approvalView(approval: ShownApproval) {
  return {
    id: approval.id,
    session_id: approval.sessionId,
    session_key: approval.sessionKey,
    turn_id: approval.turnId,
    tool: approval.tool,
    summary: approval.summary,
    asked_at: isoTime(approval.askedAt),
    expires_at: isoTime(approval.expiresAt),
    decision: approval.decision,
    by: approval.answeredBy,
  };
}
