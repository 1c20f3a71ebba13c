import { createHash } from 'node:crypto';
import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Store } from '../../store/port.ts';
import { defineMemoryTool } from '../define-tool.ts';
import type { Fact } from '../fact-store.ts';
import type { Inspectable, MemoryEntry, MemoryOwner } from '../inspect.ts';
import type { EndedSession, MemoryProvider, MemoryScope, MemoryTool, MemoryToolContext } from '../provider.ts';
import { hashOf, ownerOf, readableOwner } from '../scope.ts';
import { ownSpeech } from '../transcript.ts';

const RECALLED = 8;
const EPISODE_CHARS = 300;
/** Of owners, and of an owner's facts, the latest. */
const SHOWN = 500;

const schema = z.object({
  action: z.enum(['remember', 'recall', 'forget']),
  text: z.string().min(1).max(4000).describe('The fact; or words to recall by; or, to forget, the id that recall gave'),
});

/**
 * Facts in the store, found again by their words: what the agent was told to remember, and one line about each session
 * that ended.
 */
export class FactsMemory implements MemoryProvider, Inspectable {
  readonly name = 'sqlite';
  readonly tools: readonly MemoryTool[];
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
    this.tools = [
      defineMemoryTool({
        name: 'memory',
        description:
          'Remembers a fact about this person beyond the conversation, recalls facts by their words, forgets one.',
        schema,
        run: (args, context) => this.#apply(args, context),
      }),
    ];
  }

  async prefetch(text: string, scope: MemoryScope): Promise<string | null> {
    const facts = await this.#recall(text, scope);
    return facts.length === 0 ? null : facts.map((fact) => `- ${fact.text}`).join('\n');
  }

  async remember(fact: string, scope: MemoryScope): Promise<void> {
    await this.#keep(fact, scope, null);
  }

  /** What a session was about. Its id is the event's: however often it comes, it is kept once. */
  async onSessionEnd(ended: EndedSession): Promise<void> {
    const { session, scope, eventId } = ended;
    const first = ownSpeech(ended).find(({ role }) => role === 'user');
    if (first === undefined) return;
    const about = (session.title ?? first.text).replace(/\s+/g, ' ').trim().slice(0, EPISODE_CHARS).toWellFormed();
    const text = `On ${new Date(session.startedAt).toISOString().slice(0, 10)} (session ${session.id}): ${about}`;
    await this.#store.write('rememberFact', { id: eventId, owner: ownerOf(scope), text, source: session.id });
  }

  async owners(): Promise<readonly MemoryOwner[]> {
    const owners = await this.#store.read('factOwners', { limit: SHOWN });
    return owners.map(({ owner, facts }) => ({ owner: hashOf(owner), who: readableOwner(owner), entries: facts }));
  }

  async entries(hash: string): Promise<readonly MemoryEntry[]> {
    const owners = await this.#store.read('factOwners', { limit: SHOWN });
    const found = owners.find(({ owner }) => hashOf(owner) === hash);
    if (found === undefined) return [];
    const facts = await this.#store.read('recallFacts', { owner: found.owner, text: '', limit: SHOWN });
    return facts.map(({ text, id, at }) => ({ text, where: id, at }));
  }

  async #apply({ action, text }: z.output<typeof schema>, { scope, sessionId }: MemoryToolContext): Promise<string> {
    if (action === 'remember') {
      await this.#keep(text, scope, sessionId);
      return 'Remembered.';
    }
    if (action === 'recall') {
      const facts = await this.#recall(text, scope);
      return facts.length === 0 ? 'Nothing.' : facts.map((fact) => `${fact.id}: ${fact.text}`).join('\n');
    }
    const forgotten = await this.#store.write('forgetFact', { owner: ownerOf(scope), id: text.trim() });
    if (!forgotten) throw new MoiraiError('memory_entry', `no fact has the id "${text}"; recall it first`);
    return 'Forgotten.';
  }

  #recall(text: string, scope: MemoryScope): Promise<Fact[]> {
    return this.#store.read('recallFacts', { owner: ownerOf(scope), text, limit: RECALLED });
  }

  /** The id comes from the words: a call that is repeated keeps nothing twice. */
  async #keep(text: string, scope: MemoryScope, source: string | null): Promise<void> {
    const id = createHash('sha256').update(text.trim()).digest('hex').slice(0, 12);
    await this.#store.write('rememberFact', { id, owner: ownerOf(scope), text, source });
  }
}
