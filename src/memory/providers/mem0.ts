import { z } from 'zod';
import type { EndedSession, MemoryProvider, MemoryScope } from '../provider.ts';
import { ownerHash } from '../scope.ts';
import { listOf, ownSpeech } from '../transcript.ts';
import { JsonClient, keyOf, type ServiceOptions } from './json-client.ts';

const RECALLED = 8;
const found = z.object({ results: z.array(z.object({ memory: z.string() })) });

/** Mem0's hosted service, by its HTTP interface, version 3. People are known to it by a hash. */
export class Mem0Memory implements MemoryProvider {
  readonly name = 'mem0';
  readonly #client: JsonClient;

  constructor(options: ServiceOptions) {
    const headers = { authorization: `Token ${keyOf(this.name, options)}` };
    this.#client = new JsonClient(this.name, options.baseUrl ?? 'https://api.mem0.ai', headers);
  }

  async prefetch(text: string, scope: MemoryScope, signal: AbortSignal): Promise<string | null> {
    const results = await this.#search(text, { user_id: ownerHash(scope) }, RECALLED, signal);
    return listOf(results.map(({ memory }) => memory));
  }

  async remember(fact: string, scope: MemoryScope, signal: AbortSignal): Promise<void> {
    const messages = [{ role: 'user', content: fact }];
    await this.#add({ user_id: ownerHash(scope), messages, infer: false }, signal);
  }

  async onSessionEnd(ended: EndedSession, signal: AbortSignal): Promise<void> {
    const messages = ownSpeech(ended).map(({ role, text }) => ({ role, content: text }));
    if (messages.length === 0 || (await this.#has(ended, signal))) return;
    const { session, scope, reason, eventId } = ended;
    const metadata = { session_id: session.id, event_id: eventId, reason };
    await this.#add({ user_id: ownerHash(scope), messages, metadata }, signal);
  }

  /** It came before, and the acknowledgement was lost. */
  async #has({ scope, session, eventId }: EndedSession, signal: AbortSignal): Promise<boolean> {
    const filters = { AND: [{ user_id: ownerHash(scope) }, { metadata: { event_id: eventId } }] };
    return (await this.#search(session.id, filters, 1, signal, 0)).length > 0;
  }

  async #search(query: string, filters: unknown, count: number, signal: AbortSignal, threshold?: number) {
    const limits = { top_k: count, ...(threshold === undefined ? {} : { threshold }) };
    // Its paths end with a slash.
    const path = ['v3', 'memories', 'search', ''];
    return (await this.#client.ask(found, path, { query, filters, ...limits }, signal)).results;
  }

  async #add(body: unknown, signal: AbortSignal): Promise<void> {
    await this.#client.post(['v3', 'memories', 'add', ''], body, signal);
  }
}
