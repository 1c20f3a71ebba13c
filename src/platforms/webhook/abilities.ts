import type { Abilities } from '../platform.ts';

/** Programs bring something and are answered at once: nobody is there to send anything to. */
export const WEBHOOK_ABILITIES: Abilities = {
  maxText: 4096,
  counts: 'utf16',
  markdown: false,
  edit: false,
  remove: false,
  typing: false,
  reactions: false,
  threads: false,
  buttons: false,
  files: { in: false, out: false, maxBytes: 0 },
  editEveryMs: 1000,
};
