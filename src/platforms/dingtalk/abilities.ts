import type { Abilities, Place } from '../platform.ts';

/** Without a card template: Markdown messages, and questions that are answered in words. */
export const MESSAGE_ABILITIES: Abilities = {
  // A message has at most 20,000 bytes, with its title and what is around it.
  maxText: 18_000,
  counts: 'bytes',
  markdown: true,
  edit: false,
  remove: false,
  typing: false,
  reactions: true,
  threads: false,
  buttons: false,
  files: { in: true, out: true, maxBytes: 20 * 1024 * 1024 },
  editEveryMs: 1000,
};

/** With a card template: replies grow on a card, and questions have buttons. */
export const CARD_ABILITIES: Abilities = { ...MESSAGE_ABILITIES, buttons: true, streams: true };

/** The direct chat of somebody who has no staff id: they can be answered, and not be written to. */
export function isOutsider({ type, chat }: Pick<Place, 'type' | 'chat'>): boolean {
  return type === 'dm' && chat.startsWith('$:');
}

/** What is left where there is nothing but the address that each message brings. */
export function outsiderAbilities(abilities: Abilities): Abilities {
  const { files, ...rest } = abilities;
  return { ...rest, buttons: false, streams: false, files: { ...files, out: false }, needsReply: 'window' };
}
