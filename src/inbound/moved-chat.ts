import type { Engine } from '../engine/engine.ts';
import type { Session } from '../lifecycle/session.ts';
import { parseKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import type { Places } from '../outbound/places.ts';
import type { ReadResult } from '../store/catalogue.ts';
import type { Store } from '../store/port.ts';

interface MovedChatDeps {
  readonly engine: Engine;
  readonly places: Places;
  readonly log: Logger;
}

/** Lets a chat that goes on under another id keep its conversations: they go on under the key they have. */
export async function followMovedChat(
  platform: string,
  from: string,
  to: string,
  { engine, places, log }: MovedChatDeps,
): Promise<void> {
  await places.moved(platform, from, to);
  log.info('a chat goes on under another id', { platform, from, to });
  // What was said there before this was known began a session of its own; there is one for each conversation. What
  // was accepted in it is still answered: then it ends when this is told again, or at its deadline.
  for (const { id, key } of await openSessions(engine.store, platform)) {
    if (parseKey(key).chat !== to) continue;
    const unfinished = await engine.store.read('openTurns', { sessionId: id, limit: 1 });
    if (unfinished.length === 0) await engine.end(id, { reason: 'switched', trigger: 'message' });
  }
}

async function openSessions(store: Store, platform: string): Promise<Session[]> {
  const all: Session[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: ReadResult<'listSessions'> = await store.read('listSessions', {
      ...{ states: ['open', 'resume_pending', 'suspended'], kinds: ['chat'], platforms: [platform], reasons: [] },
      ...{ key: null, user: null, text: null, since: null, cursor, limit: 500 },
    });
    all.push(...page.sessions);
    cursor = page.next;
    if (cursor === null) return all;
  }
}
