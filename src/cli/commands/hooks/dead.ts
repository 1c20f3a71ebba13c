import type { Command } from 'commander';
import { isoTime } from '../../../engine/views.ts';
import type { DeadLetter } from '../../../store/transactions/subscribers.ts';
import { findSubscriber } from '../../hook-names.ts';
import { DEFAULT_PAGE, parseLimit } from '../../options.ts';
import { print, printJson, printLine, relativeTime, shorten, table } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Lists dead letters: events that a hook or webhook failed to take so often that they were given up.')
    .argument('[name]', 'only those of one hook or webhook')
    .option('--limit <n>', `at most so many (default: ${DEFAULT_PAGE}, at most 500)`)
    .addHelpText('after', '\n`moirai hooks replay NAME --dead` delivers them again.')
    .action((name: string | undefined, options: { limit?: string }) => dead(command, name, options));
}

const HEADINGS = ['SUBSCRIBER', 'EVENT', 'CONVERSATION', 'ATTEMPTS', 'DIED', 'ERROR'];
const ERROR_CHARS = 100;

async function dead(command: Command, name: string | undefined, options: { limit?: string }): Promise<void> {
  const settings = settingsOf(command);
  const limit = options.limit === undefined ? DEFAULT_PAGE : parseLimit(options.limit);
  await openStoreSession(settings, async ({ store }) => {
    const subscriber = name === undefined ? null : await findSubscriber(store, name);
    const letters = await store.read('listDeadLetters', { subscriber, limit });
    if (settings.json) return printJson({ data: letters.map(viewOf), next: null });
    if (letters.length === 0) return printLine('No dead letters.');
    const now = Date.now();
    return print(
      table(
        HEADINGS,
        letters.map(({ subscriber: whose, eventId, key, attempts, at, error }) => [
          ...[whose, eventId, key === '' ? '-' : key, String(attempts), relativeTime(at, now)],
          shorten(error, ERROR_CHARS),
        ]),
      ),
    );
  });
}

function viewOf({ subscriber, eventId, key, attempts, error, at }: DeadLetter) {
  const session_key = key === '' ? null : key;
  return { subscriber, event_id: eventId, session_key, attempts, error, at: isoTime(at) };
}
