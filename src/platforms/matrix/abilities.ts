import type { Abilities } from '../platform.ts';

export const MATRIX_ABILITIES: Abilities = {
  // An event has at most 65,536 bytes with all that the server adds. What is counted is the text as plain words and as
  // HTML, each as it stands in JSON.
  maxText: 40_000,
  counts: 'bytes',
  markdown: true,
  edit: true,
  remove: true,
  typing: true,
  reactions: true,
  threads: true,
  buttons: false,
  files: { in: true, out: true, maxBytes: 50 * 1024 * 1024 },
  // Each change is an event of its own, and servers allow about one in five seconds, and ten more at once.
  editEveryMs: 3000,
  idempotent: true,
};
