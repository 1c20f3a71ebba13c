import type { Abilities } from '../platform.ts';

const MB = 1024 * 1024;

export const WHATSAPP_ABILITIES: Abilities = {
  maxText: 4096,
  counts: 'utf16',
  markdown: true,
  edit: false,
  remove: false,
  typing: true,
  reactions: true,
  threads: false,
  buttons: true,
  files: { in: true, out: true, maxBytes: 100 * MB },
  editEveryMs: 1000,
  // WhatsApp shows it for 25 seconds, or until the answer.
  typingEveryMs: 20_000,
  needsReply: 'window',
};
