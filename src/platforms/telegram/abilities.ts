import type { Abilities } from '../platform.ts';

export const TELEGRAM_ABILITIES: Abilities = {
  maxText: 4096,
  counts: 'utf16',
  markdown: true,
  edit: true,
  remove: true,
  typing: true,
  reactions: true,
  threads: true,
  buttons: true,
  // Telegram's own server gives out no larger files.
  files: { in: true, out: true, maxBytes: 20 * 1024 * 1024 },
  editEveryMs: 1000,
};
