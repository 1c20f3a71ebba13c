import { MAX_PAGE_BYTES } from '../store/limits.ts';
import type { Store } from '../store/port.ts';
import type { Message, SearchedSessions } from '../store/transactions/messages.ts';

const PAGE = 500;
const INDEX_BATCH = 2000;

/** The transcript a session sees: its own, behind those of the sessions it continues. */
export async function* readTranscript(store: Store, sessionId: string): AsyncGenerator<Message> {
  for (const id of await store.read('lineageOf', { sessionId })) yield* readOwnTranscript(store, id);
}

/** What was said in one session, behind a position. */
export async function* readOwnTranscript(store: Store, sessionId: string, behind = 0): AsyncGenerator<Message> {
  for (let after: number | undefined = behind; after !== undefined; ) {
    const page: Message[] = await store.read('listMessages', { sessionId, after, limit: PAGE });
    yield* page;
    after = isSurelyLast(page) ? undefined : page.at(-1)?.position;
  }
}

/** A short page is the end, unless it may have been cut for its bytes: of at most three for each unit of a text. */
function isSurelyLast(page: readonly Message[]): boolean {
  if (page.length === PAGE || page.some(({ data }) => data !== null)) return false;
  return page.reduce((sum, { text }) => sum + text.length, 0) < MAX_PAGE_BYTES / 3;
}

/** Messages with all these words, of some sessions or of all. What was written before the call is found. */
export async function searchTranscripts(
  store: Store,
  text: string,
  limit: number,
  within?: SearchedSessions,
): Promise<Message[]> {
  while (await store.write('indexMessages', { limit: INDEX_BATCH })) {
    // The index is brought up to date in pieces, so that no write waits long behind it.
  }
  return store.read('searchMessages', { text, limit, ...(within === undefined ? {} : { within }) });
}
