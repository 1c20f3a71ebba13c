import type { Store } from '../store/port.ts';
import type { Message } from '../store/transactions/messages.ts';

const PAGE = 500;

/** The transcript a session sees: its own, behind those of the sessions it continues. */
export async function* readTranscript(store: Store, sessionId: string): AsyncGenerator<Message> {
  for (const id of await store.read('lineageOf', { sessionId })) yield* readOwnTranscript(store, id);
}

/** What was said in one session. */
export async function* readOwnTranscript(store: Store, sessionId: string): AsyncGenerator<Message> {
  for (let after = 0; ; ) {
    const page = await store.read('listMessages', { sessionId, after, limit: PAGE });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = last.position;
  }
}
