import type { Abilities } from '../platform.ts';
import type { Adapter } from './adapter.ts';

/** What can be said to any adapter: words. */
const LEAST: Abilities = {
  maxText: 2000,
  counts: 'utf16',
  markdown: true,
  edit: false,
  remove: false,
  typing: false,
  reactions: false,
  threads: true,
  buttons: false,
  files: { in: false, out: false, maxBytes: 20 * 1024 * 1024 },
  editEveryMs: 2000,
};

export const CHAT_SDK_ABILITIES = LEAST;

type Can = 'edit' | 'remove' | 'typing' | 'reactions' | 'buttons' | 'files';

interface Known extends Partial<Pick<Abilities, 'maxText' | 'counts' | 'editEveryMs'>> {
  readonly can: readonly Can[];
  /** It takes Markdown as it is: nothing is read and written again on the way. */
  readonly raw?: true;
}

/**
 * What is known of adapters. All of them have all methods, also for what their platform has no such thing of, so that the
 * methods tell nothing; of others than these no more is expected than words.
 */
const KNOWN: Readonly<Record<string, Known>> = {
  '@chat-adapter/telegram': {
    ...{ maxText: 4096, editEveryMs: 1000 },
    can: ['edit', 'remove', 'typing', 'reactions', 'buttons', 'files'],
  },
  '@chat-adapter/teams': {
    ...{ maxText: 20_000, counts: 'bytes' },
    can: ['edit', 'remove', 'typing', 'reactions', 'buttons', 'files'],
  },
  // What is left out needs the consent of a person there.
  '@chat-adapter/gchat': { maxText: 16_000, counts: 'bytes', can: ['edit', 'remove', 'buttons'] },
  // It has buttons, but not as many as a question needs.
  '@chat-adapter/messenger': { maxText: 2000, can: ['typing'] },
  '@chat-adapter/github': {
    ...{ maxText: 60_000, counts: 'points', editEveryMs: 5000, raw: true },
    can: ['edit', 'remove', 'reactions'],
  },
  // What an agent session of it said cannot be changed.
  '@chat-adapter/linear': { maxText: 60_000, raw: true, can: [] },
};

/** What a package can do, as far as its adapter has what that needs. */
export function abilitiesOf(name: string, adapter: Adapter): Abilities {
  const { can, raw: _, ...sizes } = knownOf(name);
  const has = (ability: Can, ...methods: readonly (keyof Adapter)[]): boolean =>
    can.includes(ability) && methods.every((method) => typeof adapter[method] === 'function');
  return {
    ...LEAST,
    ...sizes,
    edit: has('edit', 'editMessage'),
    remove: has('remove', 'deleteMessage'),
    typing: has('typing', 'startTyping'),
    reactions: has('reactions', 'addReaction', 'removeReaction'),
    buttons: has('buttons'),
    // What came in is fetched when its turn begins, perhaps by another process: it must be found again by its name.
    files: { ...LEAST.files, in: typeof adapter.rehydrateAttachment === 'function', out: has('files') },
  };
}

export function takesMarkdown(name: string): boolean {
  return knownOf(name).raw === true;
}

function knownOf(name: string): Known {
  return Object.hasOwn(KNOWN, name) ? (KNOWN[name] as Known) : { can: [] };
}
