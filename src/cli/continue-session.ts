import { sessionView } from '../engine/views.ts';
import { conversationOf } from '../store/transactions/conversations.ts';
import { facts, print, printJson, printLine } from './print.ts';
import { sessionFacts } from './session-text.ts';
import type { Settings } from './settings.ts';
import { openStoreSession } from './store-session.ts';

/** Continues a session in a new one of its conversation, and shows it. */
export async function continueSession(
  settings: Settings,
  idOrPrefix: string,
  lineage: 'resume' | 'branch',
  title: string | undefined,
): Promise<void> {
  await openStoreSession(settings, async (here) => {
    const from = await here.store.read('findSession', { idOrPrefix });
    const engine = await here.engine();
    // This process leaves at once: what was attached to one is not attached to this one.
    const conversation = { ...conversationOf(from), attached: false };
    const named = title === undefined ? {} : { title };
    const { session, ended, created } = await engine.continueFrom(from.id, lineage, {
      trigger: 'cli',
      conversation,
      ...named,
    });
    if (settings.json) return printJson(sessionView(session));
    await printLine(created ? `Started ${session.id}, which continues ${from.id}.` : `${session.id} is open already.`);
    if (ended !== null) await printLine(`Ended ${ended}: ${lineage === 'resume' ? 'switched' : 'branched'}.`);
    await print(`\n${facts(sessionFacts(session, Date.now()))}`);
  });
}
