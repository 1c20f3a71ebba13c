import type { Command } from 'commander';
import { statsView } from '../../../engine/views.ts';
import { facts, print, printJson } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Counts sessions: all, open with and without a live owner, and ended by reason.')
    .addHelpText('after', '\n"open without a live owner" is the number of lost sessions. It is 0.')
    .action(() => stats(command));
}

async function stats(command: Command): Promise<void> {
  const settings = settingsOf(command);
  await openStoreSession(settings, async ({ store }) => {
    const counted = await store.read('stats', {});
    if (settings.json) return printJson(statsView(counted));
    const { total, open, openOwned, openUnowned, ended } = counted;
    await print(
      facts({
        total,
        open,
        '  with a live owner': openOwned,
        '  without a live owner': openUnowned,
        ended: total - open,
      }),
    );
    const reasons = Object.entries(ended).map(([reason, n]) => [`  ${reason}`, n] as const);
    if (reasons.length > 0) await print(facts(Object.fromEntries(reasons)));
  });
}
