import type { FileKind } from './inbox.ts';
import type { Place } from './place.ts';

export interface Outgoing {
  /** Markdown, as models write it. */
  readonly text: string;
  /** In rows. A press comes back with the button's data, at most 64 bytes. */
  readonly buttons?: readonly (readonly Button[])[];
  readonly files?: readonly OutgoingFile[];
  /** The message that it quotes, so that people see which one it answers. */
  readonly replyTo?: string;
  /** Names it for good: every attempt at the same message carries the same key, and no other message does. */
  readonly key?: string;
  /** The message that it answers, as far as answers need it; it may have expired. */
  readonly reply?: ReplyContext;
  /** Long parts beside the words, such as the output of tools; only where `abilities.details` says so. */
  readonly details?: readonly Detail[];
}

export interface Detail {
  readonly title: string;
  readonly text: string;
}

export interface Button {
  readonly label: string;
  readonly data: string;
}

export interface OutgoingFile {
  readonly kind: FileKind;
  readonly name: string;
  readonly mime: string | null;
  readonly bytes: Uint8Array;
}

export interface SentMessage {
  /** The last one, if it became several. */
  readonly messageId: string;
  /** Where it went, when that is not where it was sent to: the post that it opened. */
  readonly place?: Place;
}

/**
 * What a platform wants back when a message is answered: a thread, a subject, a handle that expires. Kept with the turn,
 * so it survives a restart; only the platform reads `data`.
 */
export interface ReplyFacts {
  readonly data: Readonly<Record<string, string | number | boolean | null>>;
  /** Until when it can be used, epoch milliseconds; null for always. */
  readonly until: number | null;
}

/** The message that is answered, as far as answers need it. */
export interface ReplyContext extends ReplyFacts {
  readonly messageId: string;
}
