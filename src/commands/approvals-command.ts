import { MoiraiError } from '../errors/moirai-error.ts';
import { type CommandSpec, record } from './command.ts';

export const APPROVALS_COMMAND: CommandSpec = {
  name: 'approvals',
  operator: true,
  takes: '[revoke ID]',
  summary: 'show what waits for an answer and what is always allowed, or take that back',
  async run(call, deps) {
    await record(call, deps);
    const { store } = deps.engine;
    const [, id] = /^revoke\s+(\S+)$/.exec(call.args) ?? [];
    if (id !== undefined) {
      const rule = await store.write('revokeApprovalRule', { id });
      if (rule === null) throw new MoiraiError('approval_not_found', `nothing that is always allowed has the id ${id}`);
      return `Revoked: ${rule.summary}`;
    }
    if (call.args !== '') throw new MoiraiError('bad_input', '/approvals takes nothing, or revoke and an id');
    const waiting = await deps.approvals.waiting();
    const rules = await store.read('listApprovalRules', {});
    const lines = [
      ...waiting.map(({ id, summary }) => `${id} waits: ${summary}`),
      ...rules.map(({ id, summary }) => `${id} is always allowed: ${summary}`),
    ];
    return lines.length === 0 ? 'Nothing waits, and nothing is always allowed.' : lines.join('\n');
  },
};
