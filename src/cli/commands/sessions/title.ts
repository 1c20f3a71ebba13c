import type { Command } from 'commander';
import { sessionView } from '../../../engine/views.ts';
import { printable, printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Gives a session that has not ended a title. An empty text takes it away.')
    .argument('<id>', 'the id, or any beginning of it that is unique')
    .argument('<text...>', 'the title')
    .action((id: string, words: string[]) => setTitle(settingsOf(command), id, words.join(' ').trim()));
}

async function setTitle(settings: Settings, idOrPrefix: string, title: string): Promise<void> {
  await openStoreSession(settings, async (here) => {
    const { id } = await here.store.read('findSession', { idOrPrefix });
    const { session } = await (await here.engine()).setTitle(id, title === '' ? null : title);
    if (settings.json) return printJson(sessionView(session));
    return printLine(`${session.id}: ${session.title === null ? 'no title' : printable(session.title)}`);
  });
}
