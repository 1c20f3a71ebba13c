import { z } from 'zod';
import { hasCode } from '../../errors/moirai-error.ts';
import type { Message } from '../../store/transactions/messages.ts';
import type { EndedSession, MemoryProvider, MemoryScope } from '../provider.ts';
import { ownerHash } from '../scope.ts';
import { ownSpeech } from '../transcript.ts';
import { JsonClient, type ServiceOptions } from './json-client.ts';

const WORKSPACE = 'moirai';
const AGENT = 'agent';
/** What it takes at once, and in one message. */
const BATCH = 100;
const MAX_CHARS = 20_000;
const RECALLED = 8;

const page = z.object({ total: z.number().int() });
const known = z.object({ representation: z.string().nullable() });

/** Honcho, by its HTTP interface, version 3. A person is a peer, known to it by a hash; a session is a session. */
export class HonchoMemory implements MemoryProvider {
  readonly name = 'honcho';
  readonly #client: JsonClient;

  /** The key may be missing: a server of one's own may need none. */
  constructor({ apiKey, baseUrl }: ServiceOptions) {
    const headers: Record<string, string> = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
    this.#client = new JsonClient(this.name, baseUrl ?? 'https://api.honcho.dev', headers);
  }

  async initialize(_context: unknown, signal: AbortSignal): Promise<void> {
    await this.#client.post(['v3', 'workspaces'], { id: WORKSPACE }, signal);
  }

  async prefetch(text: string, scope: MemoryScope, signal: AbortSignal): Promise<string | null> {
    const question = { search_query: text.slice(0, 2000), search_top_k: RECALLED };
    try {
      const path = pathOf('peers', ownerHash(scope), 'representation');
      return (await this.#client.ask(known, path, question, signal)).representation;
    } catch (thrown) {
      // A person the service does not know yet.
      if (hasCode(thrown, 'subscriber_failed') && thrown.details.status === 404) return null;
      throw thrown;
    }
  }

  /** Goes on behind what it has: after a batch that failed, and when the same end comes again. */
  async onSessionEnd(ended: EndedSession, signal: AbortSignal): Promise<void> {
    const peer = ownerHash(ended.scope);
    const pieces = ownSpeech(ended).flatMap((message) => piecesOf(message, peer));
    if (pieces.length === 0) return;
    const messages = pathOf('sessions', ended.session.id, 'messages');
    const peers = { [peer]: { observe_me: true }, [AGENT]: { observe_me: false } };
    const metadata = { event_id: ended.eventId, reason: ended.reason };
    await this.#client.post(pathOf('sessions'), { id: ended.session.id, peers, metadata }, signal);
    const { total } = await this.#client.ask(page, [...messages, 'list'], {}, signal, 'page=1&size=1');
    for (let first = total; first < pieces.length; first += BATCH) {
      await this.#client.post(messages, { messages: pieces.slice(first, first + BATCH) }, signal);
    }
  }
}

const pathOf = (...parts: readonly string[]): string[] => ['v3', 'workspaces', WORKSPACE, ...parts];

function piecesOf({ role, text, at }: Message, peer: string) {
  const author = { peer_id: role === 'user' ? peer : AGENT, created_at: new Date(at).toISOString() };
  const pieces = [];
  for (let from = 0; from < text.length; from += MAX_CHARS) {
    pieces.push({ ...author, content: text.slice(from, from + MAX_CHARS).toWellFormed() });
  }
  return pieces;
}
