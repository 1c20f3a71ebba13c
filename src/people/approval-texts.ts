import { APPROVAL_ANSWERS, type ApprovalAnswer } from '../lifecycle/states.ts';

/** How an answer is confirmed to who gave it. */
export const ANSWERED_TEXTS: Readonly<Record<ApprovalAnswer, string>> = {
  once: 'Allowed',
  session: 'Allowed in this session',
  always: 'Allowed from now on',
  deny: 'Refused',
};

const LABELS: Readonly<Record<ApprovalAnswer, string>> = {
  once: 'Allow',
  session: 'In this session',
  always: 'Always',
  deny: 'Refuse',
};

const BUTTON = /^approval:(\w+):(apr_[0-9a-z]+)$/;

/** The buttons under a question. */
export function approvalButtons(id: string): { label: string; data: string }[][] {
  const button = (answer: ApprovalAnswer) => ({ label: LABELS[answer], data: `approval:${answer}:${id}` });
  return [
    [button('once'), button('deny')],
    [button('session'), button('always')],
  ];
}

/** What pressing a button means; null for a button that is none of these. */
export function readApprovalButton(data: string): { readonly id: string; readonly decision: ApprovalAnswer } | null {
  const [, word, id = ''] = BUTTON.exec(data) ?? [];
  const decision = APPROVAL_ANSWERS.find((answer) => answer === word);
  return decision === undefined ? null : { id, decision };
}
