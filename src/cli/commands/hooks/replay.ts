import type { Command } from 'commander';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import { findSubscriber } from '../../hook-names.ts';
import { parseWhole } from '../../options.ts';
import { printJson, printLine } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

interface ReplayOptions {
  readonly from?: string;
  readonly dead?: boolean;
}

export function define(command: Command): void {
  command
    .description('Delivers events to a hook or webhook once more, in order per conversation.')
    .argument('<name>', 'the hook or webhook; hook:NAME or webhook:NAME where both have the name; memory:NAME')
    .option('--from <seq>', 'everything from this number of `moirai events` on')
    .option('--dead', 'its dead letters (so it is without --from)')
    .addHelpText('after', NOTE)
    .action((name: string, options: ReplayOptions) => replay(command, name, options));
}

const NOTE = `
They are delivered by the gateway: at once if it runs, else when it starts.`;

async function replay(command: Command, name: string, { from, dead }: ReplayOptions): Promise<void> {
  const settings = settingsOf(command);
  if (from !== undefined && dead === true) throw new MoiraiError('bad_input', 'give either --from or --dead, not both');
  const fromSeq = from === undefined ? null : parseWhole('--from', from, 0, Number.MAX_SAFE_INTEGER);
  await openStoreSession(settings, async ({ store }) => {
    const subscriber = await findSubscriber(store, name);
    const { events } = await store.write('replay', { subscriber, fromSeq });
    if (settings.json) return printJson({ subscriber, events });
    // From a number on it is not known which of them the subscriber listens to.
    const count = fromSeq === null ? `${events} dead letters go` : `what it listens to of ${events} events goes`;
    return printLine(`${subscriber}: ${count} out again`);
  });
}
