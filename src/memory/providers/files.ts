import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { defineMemoryTool } from '../define-tool.ts';
import { EVERYBODY, type Inspectable, type MemoryEntry, type MemoryOwner } from '../inspect.ts';
import type { MemoryContext, MemoryProvider, MemoryScope, MemoryTool } from '../provider.ts';
import { ownerHash } from '../scope.ts';
import { MemoryFile } from './memory-file.ts';

/** In characters. Small on purpose: all of it is in every prompt. */
export interface FileLimits {
  readonly shared: number;
  readonly notes: number;
  readonly user: number;
}

/** Of a file that was written by hand an operator sees more than a model. */
const SHOWN = 100_000;

const LIMITS: FileLimits = { shared: 4000, notes: 2500, user: 1500 };

const schema = z.object({
  action: z.enum(['add', 'replace', 'remove']),
  target: z.enum(['notes', 'user']).describe('user: who the person is and what they like. notes: everything else'),
  text: z.string().max(2000).optional().describe('The entry to add, or to put in place of another: one short sentence'),
  match: z.string().max(500).optional().describe('Words that only the entry to replace or remove has in it'),
});

/**
 * Memory in files that people can read and change. `MEMORY.md` is the operator's and shown to everybody; the agent writes
 * only to the folder of the person it talks to.
 */
export class FilesMemory implements MemoryProvider, Inspectable {
  readonly name = 'files';
  readonly tools: readonly MemoryTool[];
  readonly #limits: FileLimits;
  #folder: string | null = null;

  constructor(limits: Partial<FileLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
    this.tools = [
      defineMemoryTool({
        name: 'memory',
        description:
          'Changes what you remember about this person beyond the conversation. What you remember is shown to you at the start of the next one.',
        schema,
        run: (args, { scope }) => this.#apply(args, scope),
      }),
    ];
  }

  async initialize({ folder }: MemoryContext): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    this.#folder = folder;
  }

  async systemPromptBlock(scope: MemoryScope): Promise<string | null> {
    const shared = new MemoryFile(join(this.#home(), 'MEMORY.md'), this.#limits.shared);
    const texts = await Promise.all([
      shared.text(),
      this.#file('notes', scope).text(),
      this.#file('user', scope).text(),
    ]);
    const titles = ['What you are to know in every conversation:', 'What you noted:', 'About whom you talk to:'];
    const parts = texts.flatMap((text, i) => (text === '' ? [] : [`${titles[i]}\n${text}`]));
    return parts.length === 0 ? null : parts.join('\n\n');
  }

  async remember(fact: string, scope: MemoryScope): Promise<void> {
    await this.#file('notes', scope).add(fact);
  }

  async owners(): Promise<readonly MemoryOwner[]> {
    const folders = await readdir(join(this.#home(), 'users')).catch(() => []); // There are none yet.
    const owners = [EVERYBODY, ...folders.sort()];
    const counted = await Promise.all(
      owners.map(async (owner) => ({ owner, who: null, entries: (await this.entries(owner)).length })),
    );
    return counted.filter(({ entries }) => entries > 0);
  }

  async entries(owner: string): Promise<readonly MemoryEntry[]> {
    const names =
      owner === EVERYBODY ? ['MEMORY.md'] : ['MEMORY.md', 'USER.md'].map((file) => join('users', owner, file));
    const files = await Promise.all(
      names.map(async (where) => ({ where, lines: await new MemoryFile(join(this.#home(), where), SHOWN).lines() })),
    );
    return files.flatMap(({ where, lines }) => lines.map((text) => ({ text, where, at: null })));
  }

  async #apply({ action, target, text, match }: z.output<typeof schema>, scope: MemoryScope): Promise<string> {
    const file = this.#file(target, scope);
    if (action === 'add') await file.add(given('text', text));
    else if (action === 'replace') await file.replace(given('match', match), given('text', text));
    else await file.remove(given('match', match));
    return 'Done. It counts from the next conversation on.';
  }

  #file(target: 'notes' | 'user', scope: MemoryScope): MemoryFile {
    const name = target === 'notes' ? 'MEMORY.md' : 'USER.md';
    return new MemoryFile(join(this.#home(), 'users', ownerHash(scope), name), this.#limits[target]);
  }

  #home(): string {
    if (this.#folder === null) throw new MoiraiError('internal', 'the memory in files was not initialized');
    return this.#folder;
  }
}

function given(name: string, value: string | undefined): string {
  if (value === undefined || value.trim() === '') throw new MoiraiError('bad_input', `"${name}" is needed for this`);
  return value;
}
