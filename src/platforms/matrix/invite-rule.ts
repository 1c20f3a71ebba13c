import { serverOf } from './ids.ts';

export interface InviteRule {
  readonly rules: readonly string[];
  /** The people that `allow` stands for. */
  readonly allow: readonly string[];
}

export function isInviteRule(rule: string): boolean {
  return rule === 'allow' || rule === 'server' || rule === '*' || /^(?:\*|@[^\s:]+):[^\s:]\S*$/.test(rule);
}

/** Whether somebody may invite us into a room. */
export function mayInvite(inviter: string, own: string, { rules, allow }: InviteRule): boolean {
  const server = serverOf(inviter);
  return rules.some((rule) => {
    if (rule === 'allow') return [inviter, '*', `matrix:${inviter}`, 'matrix:*'].some((name) => allow.includes(name));
    if (rule === 'server') return server === serverOf(own);
    if (rule.startsWith('*:')) return server === rule.slice(2);
    return rule === '*' || rule === inviter;
  });
}
