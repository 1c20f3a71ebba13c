import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ApprovalAnswer } from '../lifecycle/states.ts';
import { type Answerer, mayAnswer } from './access.ts';
import type { ApprovalRow } from './approval-store.ts';

export interface ApprovalReply {
  readonly id: string;
  readonly decision: ApprovalAnswer;
  readonly by: Answerer;
  /** Why, for the agent that is refused. */
  readonly reason: string | null;
}

const REFUSALS = { 'not yours': 'this was not asked of you', 'admins only': 'only an admin may allow this' };

/**
 * Answers what an agent asks, whichever process waits for it. Throws `approval_not_found`, `approval_forbidden`, and
 * `approval_over` when another answer came first or nobody waits any longer.
 */
export async function answerApproval(
  engine: Engine,
  rule: Config['access']['approvals'],
  reply: ApprovalReply,
): Promise<ApprovalRow> {
  const { id, decision, by, reason } = reply;
  const asked = await engine.store.read('findApproval', { id });
  if (asked === null) throw new MoiraiError('approval_not_found', `nothing that is asked for has the id ${id}`);
  const right = mayAnswer(by, asked.askedOf, decision, rule);
  if (right !== 'yes') throw new MoiraiError('approval_forbidden', REFUSALS[right], { details: { right } });
  const answered = await engine.settle((context) =>
    engine.store.write('answerApproval', { context, id, decision, by: by.name, reason }),
  );
  if (answered?.counts) return answered.approval;
  const before = answered?.approval.decision ?? asked.decision ?? 'expired';
  throw new MoiraiError('approval_over', `${id} was answered before: ${before}`, { details: { decision: before } });
}
