import type { Command } from 'commander';
import { isoTime, messageView } from '../../../engine/views.ts';
import { indentedText } from '../../message-text.ts';
import { DEFAULT_PAGE, parseLimit } from '../../options.ts';
import { printJson, printLine, shorten } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

const TEXT_CHARS = 300;
const INDEX_BATCH = 2000;

export function define(command: Command): void {
  command
    .description('Finds messages that contain all the words, best match first.')
    .argument('<text...>', 'the words')
    .option('--limit <n>', `at most so many (default: ${DEFAULT_PAGE}, at most 500)`)
    .action((words: string[], options: { limit?: string }) => search(command, words.join(' '), options));
}

async function search(command: Command, text: string, options: { limit?: string }): Promise<void> {
  const settings = settingsOf(command);
  const limit = options.limit === undefined ? DEFAULT_PAGE : parseLimit(options.limit);
  await openStoreSession(settings, async ({ store }) => {
    while (await store.write('indexMessages', { limit: INDEX_BATCH })) {
      // In pieces, so that nobody waits long behind it.
    }
    const found = await store.read('searchMessages', { text, limit });
    if (settings.json) return printJson({ data: found.map(messageView), next: null });
    if (found.length === 0) return printLine('No messages.');
    for (const message of found) {
      const place = `${message.sessionId}  ${isoTime(message.at)}`;
      await printLine(`${place}  ${indentedText(message.role, shorten(message.text, TEXT_CHARS))}`);
    }
  });
}
