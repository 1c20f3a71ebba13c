import type { Abilities, Place } from '../platform.ts';

/** What Slack can do in a thread, which is where its AI apps talk. */
export const SLACK_ABILITIES: Abilities = {
  // What all Markdown blocks of one message may hold, and one call of a stream.
  maxText: 12_000,
  counts: 'utf16',
  markdown: true,
  edit: true,
  remove: true,
  typing: true,
  reactions: true,
  threads: true,
  buttons: true,
  files: { in: true, out: true, maxBytes: 100 * 1024 * 1024 },
  // Slack allows about 50 changes a minute.
  editEveryMs: 1200,
  streams: true,
  // A status stays until the app says something, or for two minutes.
  typingEveryMs: 30_000,
};

const OUTSIDE_THREADS: Abilities = { ...SLACK_ABILITIES, streams: false, typing: false };
const IN_CHANNEL_THREADS: Abilities = { ...SLACK_ABILITIES, typing: false };

/** Slack streams in threads only, and shows a status only in the threads of its assistant. */
export function slackAbilitiesAt({ type, thread }: Place): Abilities {
  if (thread === undefined) return OUTSIDE_THREADS;
  return type === 'dm' ? SLACK_ABILITIES : IN_CHANNEL_THREADS;
}
