import type { Abilities } from '../platform.ts';

export const DISCORD_ABILITIES: Abilities = {
  maxText: 2000,
  counts: 'points',
  markdown: true,
  edit: true,
  remove: true,
  typing: true,
  reactions: true,
  threads: true,
  buttons: true,
  files: { in: true, out: true, maxBytes: 10 * 1024 * 1024 },
  editEveryMs: 1500,
  idempotent: true,
  details: true,
  opens: true,
  typingEveryMs: 8000,
};
