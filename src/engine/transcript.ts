import type { Store } from '../store/port.ts';
import type { Message } from '../store/transactions/messages.ts';

const PAGE = 500;

/** The transcript a session sees: its own, behind those of the sessions it continues. */
export async function* readTranscript(store: Store, sessionId: string): AsyncGenerator<Message> {
  for (const id of await store.read('lineageOf', { sessionId })) {
    for (let after = 0; ; ) {
      const page = await store.read('listMessages', { sessionId: id, after, limit: PAGE });
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      after = last.position;
    }
  }
}
