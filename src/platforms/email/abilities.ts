import type { Abilities } from '../platform.ts';

export const EMAIL_ABILITIES: Abilities = {
  // A mail has no limit worth the name; what is longer nobody reads in one.
  maxText: 100_000,
  counts: 'utf16',
  markdown: true,
  edit: false,
  remove: false,
  typing: false,
  reactions: false,
  threads: true,
  buttons: false,
  // 25 MB is what most servers take as a whole, and a file grows by a third on its way.
  files: { in: true, out: true, maxBytes: 18 * 1024 * 1024 },
  editEveryMs: 0,
  needsReply: 'context',
};
