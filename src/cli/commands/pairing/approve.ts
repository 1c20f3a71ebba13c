import type { Command } from 'commander';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import { approveCode } from '../../../people/pairing.ts';
import type { Store } from '../../../store/port.ts';
import { printable, printJson, printLine } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';
import { pairingView } from './list.ts';

export function define(command: Command): void {
  command
    .description('Lets somebody in who was given a code.')
    .usage('[platform] <code>')
    .argument(
      '<words...>',
      'the code they tell you, or the request id of `moirai pairing list`; before it the platform, where people wait on several',
    )
    .addHelpText('after', '\nFive wrong codes in a row close the door of a platform for an hour.')
    .action((words: string[]) => approve(command, words));
}

async function approve(command: Command, words: readonly string[]): Promise<void> {
  const settings = settingsOf(command);
  const [first = '', second, ...rest] = words;
  if (rest.length > 0) throw new MoiraiError('usage', 'one platform and one code at a time');
  await openStoreSession(settings, async ({ store }) => {
    const [platform, code] = second === undefined ? [await onlyPlatform(store), first] : [first, second];
    const pairing = await approveCode(store, platform, code);
    if (settings.json) return printJson(pairingView(pairing));
    const who = printable(pairing.name === null ? pairing.userId : `${pairing.name} (${pairing.userId})`);
    return printLine(`${who} on ${platform} may talk to the agent now.`);
  });
}

async function onlyPlatform(store: Store): Promise<string> {
  const waiting = (await store.read('listPairings', {})).filter(({ approvedAt }) => approvedAt === null);
  const [platform, another] = new Set(waiting.map((each) => each.platform));
  if (platform === undefined) throw new MoiraiError('pairing_unknown', 'nobody waits to be let in');
  if (another === undefined) return platform;
  throw new MoiraiError('usage', `people wait on ${platform} and on ${another}: say which platform the code is of`);
}
