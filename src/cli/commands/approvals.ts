import type { Command } from 'commander';
import { isoTime } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { APPROVAL_ANSWERS } from '../../lifecycle/states.ts';
import { answerApproval } from '../../people/answer-approval.ts';
import type { ApprovalRule } from '../../people/approval-store.ts';
import { ANSWERED_TEXTS } from '../../people/approval-texts.ts';
import { approvalView } from '../../people/approval-view.ts';
import { type Answer, inStore } from '../command.ts';
import { printable, relativeTime, table } from '../print.ts';
import type { StoreSession } from '../store-session.ts';

export function define(group: Command): void {
  group
    .command('list')
    .summary('what waits for an answer, and what is always allowed')
    .description('Lists what agents ask people to allow, and what was allowed for good.')
    .action(inStore(list));
  group
    .command('answer')
    .summary('allow something, or refuse it')
    .description('Answers what an agent asks for. The first answer counts.')
    .argument('<id>', 'the id that `moirai approvals list` shows')
    .argument('<decision>', APPROVAL_ANSWERS.join(', '))
    .option('--reason <text>', 'told to the agent that is refused')
    .action(inStore(reply));
  group
    .command('revoke')
    .summary('ask again for what was always allowed')
    .description('Takes back what was allowed for good: it is asked for again.')
    .argument('<id>', 'the id that `moirai approvals list` shows')
    .action(inStore(revoke));
}

async function list({ store }: StoreSession): Promise<Answer> {
  const waiting = await store.read('waitingApprovals', { key: null });
  const rules = await store.read('listApprovalRules', {});
  const rows = [
    ...waiting.map(({ id, tool, summary, askedAt }) => [id, 'waits', tool, summary, relativeTime(askedAt)]),
    ...rules.map(({ id, tool, summary, madeAt }) => [id, 'always', tool, summary, relativeTime(madeAt)]),
  ];
  const text = rows.length === 0 ? 'Nothing waits, and nothing is always allowed.' : table(HEADS, rows);
  return { json: { data: waiting.map(approvalView), next: null, always: rules.map(ruleViewOf) }, text };
}

const HEADS = ['ID', 'STATE', 'TOOL', 'WHAT', 'SINCE'];

async function reply(
  here: StoreSession,
  id: string,
  word: string,
  { reason = null }: { reason?: string | null },
): Promise<Answer> {
  const decision = APPROVAL_ANSWERS.find((each) => each === word);
  if (decision === undefined) {
    throw new MoiraiError('usage', `"${word}" is no answer; there are ${APPROVAL_ANSWERS.join(', ')}`);
  }
  const by = { name: 'cli', person: null, admin: true };
  const approval = await answerApproval(await here.engine(), 'admins', { id, decision, by, reason });
  return { json: approvalView(approval), text: `${ANSWERED_TEXTS[decision]}: ${printable(approval.summary)}` };
}

async function revoke({ store }: StoreSession, id: string): Promise<Answer> {
  const rule = await store.write('revokeApprovalRule', { id });
  if (rule === null) throw new MoiraiError('approval_not_found', `nothing that is always allowed has the id ${id}`);
  return { json: { ...ruleViewOf(rule), state: 'revoked' }, text: `Revoked: ${printable(rule.summary)}` };
}

function ruleViewOf({ id, tool, summary, madeBy, madeAt }: ApprovalRule) {
  return { id, tool, summary, by: madeBy, at: isoTime(madeAt) };
}
