import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { EndedSession, MemoryProvider, MemoryScope } from '../provider.ts';
import { ownerHash } from '../scope.ts';
import { listOf, ownSpeech } from '../transcript.ts';
import { JsonClient, keyOf, type ServiceOptions } from './json-client.ts';

const RECALLED = 8;
const found = z.object({
  results: z.array(z.object({ memory: z.string().optional(), chunk: z.string().optional() })),
});

/** Supermemory, by its HTTP interface. People are known to it by a hash, which is their container. */
export class SupermemoryMemory implements MemoryProvider {
  readonly name = 'supermemory';
  readonly #client: JsonClient;

  constructor(options: ServiceOptions) {
    const headers = { authorization: `Bearer ${keyOf(this.name, options)}` };
    this.#client = new JsonClient(this.name, options.baseUrl ?? 'https://api.supermemory.ai', headers);
  }

  async prefetch(text: string, scope: MemoryScope, signal: AbortSignal): Promise<string | null> {
    const question = { q: text, containerTag: ownerHash(scope), searchMode: 'hybrid', limit: RECALLED };
    const { results } = await this.#client.ask(found, ['v4', 'search'], question, signal);
    return listOf(results.map(({ memory, chunk }) => memory ?? chunk));
  }

  async remember(fact: string, scope: MemoryScope, signal: AbortSignal): Promise<void> {
    await this.#add(fact, scope, `fact-${hashOf(fact)}`, {}, signal);
  }

  /** A document's own id is made of the event's: what comes again takes the place of itself. */
  async onSessionEnd(ended: EndedSession, signal: AbortSignal): Promise<void> {
    const speech = ownSpeech(ended);
    if (speech.length === 0) return;
    const { session, scope, reason, eventId } = ended;
    const content = speech.map(({ role, text }) => `${role}: ${text}`).join('\n\n');
    const metadata = { session_id: session.id, event_id: eventId, reason };
    await this.#add(content, scope, `end-${hashOf(eventId)}`, metadata, signal);
  }

  async #add(
    content: string,
    scope: MemoryScope,
    customId: string,
    metadata: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const document = { content, containerTag: ownerHash(scope), customId, metadata };
    await this.#client.post(['v3', 'documents'], document, signal);
  }
}

/** Its ids are letters, digits, hyphens and underscores alone. */
function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 40);
}
