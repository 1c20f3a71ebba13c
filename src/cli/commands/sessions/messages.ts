import type { Command } from 'commander';
import { isoTime, messageView } from '../../../engine/views.ts';
import { indentedText } from '../../message-text.ts';
import { DEFAULT_PAGE, parseLimit, parseWhole } from '../../options.ts';
import { printJson, printLine } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

interface MessagesOptions {
  readonly limit?: string;
  readonly cursor?: string;
}

export function define(command: Command): void {
  command
    .description('Shows the transcript of one session, oldest message first.')
    .argument('<id>', 'the id, or any beginning of it that is unique')
    .option('--limit <n>', `at most so many (default: ${DEFAULT_PAGE}, at most 500)`)
    .option('--cursor <cursor>', 'go on where an earlier page stopped')
    .action((id: string, options: MessagesOptions) => messages(command, id, options));
}

async function messages(command: Command, idOrPrefix: string, options: MessagesOptions): Promise<void> {
  const settings = settingsOf(command);
  const limit = options.limit === undefined ? DEFAULT_PAGE : parseLimit(options.limit);
  const { cursor = '0' } = options;
  const after = parseWhole('--cursor', cursor, 0, Number.MAX_SAFE_INTEGER);
  await openStoreSession(settings, async ({ store }) => {
    const session = await store.read('findSession', { idOrPrefix });
    const page = await store.read('listMessages', { sessionId: session.id, after, limit });
    const last = page.at(-1);
    const next = last !== undefined && last.position < session.messageCount ? String(last.position) : null;
    if (settings.json) return printJson({ data: page.map(messageView), next });
    if (page.length === 0) return printLine('No messages.');
    for (const { role, at, text } of page) await printLine(`${isoTime(at)}  ${indentedText(role, text)}`);
    if (next !== null) await printLine(`There are more: add --cursor ${next}`);
  });
}
