import { MoiraiError } from '../../errors/moirai-error.ts';
import { record, type SlashCommandSpec } from './command.ts';
import { NOTHING_HERE } from './session-commands.ts';

export const BACKGROUND_COMMAND: SlashCommandSpec = {
  name: 'background',
  ordered: true,
  aliases: ['bg'],
  takes: 'TEXT',
  summary: 'have something done beside this conversation, and be told',
  async run(call, deps) {
    if (call.args === '') throw new MoiraiError('bad_input', '/background needs a text behind it');
    if (call.session === null) return NOTHING_HERE;
    await record(call, deps);
    const child = await deps.children.spawn(call.session, call.args);
    return `Working on it beside this conversation (${child}). You will be told.`;
  },
};
