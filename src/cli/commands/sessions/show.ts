import type { Command } from 'commander';
import { sessionView } from '../../../engine/views.ts';
import { eventLine } from '../../event-text.ts';
import { facts, print, printJson, printLine } from '../../print.ts';
import { sessionFacts } from '../../session-text.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

const EVENTS_SHOWN = 10;

export function define(command: Command): void {
  command
    .description('Shows one session: what it is, whom it belongs to, how it ended, and its last events.')
    .argument('<id>', 'the id, or any beginning of it that is unique')
    .action((id: string) => show(command, id));
}

async function show(command: Command, idOrPrefix: string): Promise<void> {
  const settings = settingsOf(command);
  await openStoreSession(settings, async ({ store }) => {
    const session = await store.read('findSession', { idOrPrefix });
    if (settings.json) return printJson(sessionView(session));
    const lineage = await store.read('lineageOf', { sessionId: session.id });
    const events = await store.read('lastEvents', { sessionId: session.id, limit: EVENTS_SHOWN });
    const continues = lineage.length > 1 ? lineage.slice(0, -1).join(', ') : null;
    await print(facts({ ...sessionFacts(session, Date.now()), continues }));
    await printLine(`\nLast events`);
    for (const event of events) await printLine(eventLine(event, false));
  });
}
