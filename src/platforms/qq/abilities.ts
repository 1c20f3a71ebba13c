import type { Abilities, Place } from '../platform.ts';
import { sceneOf } from './scenes.ts';

/** With one person. Whatever is not said of another scene is the same there. */
export const QQ_ABILITIES: Abilities = {
  maxText: 4000,
  counts: 'utf16',
  markdown: true,
  edit: false,
  remove: false,
  // There is a sign for it, but it uses up one of the few answers that a message may have.
  typing: false,
  reactions: false,
  threads: false,
  buttons: true,
  files: { in: true, out: true, maxBytes: 100 * 1024 * 1024 },
  editEveryMs: 1000,
  idempotent: 'answers',
  streams: true,
  needsReply: 'window',
};

const IN_GROUPS: Abilities = { ...QQ_ABILITIES, streams: false };
/** Guilds are older: no Markdown without an invitation, so no buttons; no files; and a repetition is a second message. */
const IN_GUILDS: Abilities = {
  ...IN_GROUPS,
  buttons: false,
  idempotent: false,
  files: { ...QQ_ABILITIES.files, out: false },
};
const IN_CHANNELS: Abilities = { ...IN_GUILDS, reactions: true };

export function abilitiesIn(place: Place): Abilities {
  switch (sceneOf(place)) {
    case 'person':
      return QQ_ABILITIES;
    case 'group':
      return IN_GROUPS;
    case 'channel':
      return IN_CHANNELS;
    case 'guild-direct':
      return IN_GUILDS;
  }
}
