import type { Command } from 'commander';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import { printJson, printLine } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Shuts somebody out again, or takes back a request. What they have under way is not begun any more.')
    .usage('[platform] <user>')
    .argument(
      '<words...>',
      'the id that `moirai pairing list` shows; before it the platform, where several know the user',
    )
    .action((words: string[]) => revoke(command, words));
}

async function revoke(command: Command, words: readonly string[]): Promise<void> {
  const settings = settingsOf(command);
  const [first = '', second, ...rest] = words;
  if (rest.length > 0) throw new MoiraiError('usage', 'one platform and one user at a time');
  const userId = second ?? first;
  await openStoreSession(settings, async ({ store }) => {
    const known = (await store.read('listPairings', {})).filter((pairing) => pairing.userId === userId);
    const [found, another] = second === undefined ? known : known.filter(({ platform }) => platform === first);
    if (found === undefined) throw new MoiraiError('pairing_unknown', `nobody called ${userId} was let in or waits`);
    if (another !== undefined) {
      throw new MoiraiError('usage', `${userId} is on ${found.platform} and on ${another.platform}: say which`);
    }
    await store.write('revokePairing', { platform: found.platform, userId });
    if (settings.json) return printJson({ platform: found.platform, user_id: userId, state: 'revoked' });
    return printLine(`${userId} on ${found.platform} may not talk to the agent any more.`);
  });
}
