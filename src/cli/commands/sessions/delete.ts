import type { Command } from 'commander';
import { printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Removes a session with its transcript and turns, for good. An open one ends first, as "deleted".')
    .argument('<id>', 'the id, or any beginning of it that is unique')
    .addHelpText('after', HELP)
    .action((id: string) => deleteSession(settingsOf(command), id));
}

const HELP = `
Its events stay in the log. A session whose transcript others see (they resumed or branched it) is not removed before
they are.`;

async function deleteSession(settings: Settings, idOrPrefix: string): Promise<void> {
  await openStoreSession(settings, async (here) => {
    const { id } = await here.store.read('findSession', { idOrPrefix });
    const { ended } = await (await here.engine()).delete(id, 'cli');
    if (settings.json) return printJson({ id, deleted: true, ended });
    return printLine(ended ? `Ended and deleted ${id}` : `Deleted ${id}`);
  });
}
