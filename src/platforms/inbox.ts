import type { ReplyFacts } from './outgoing.ts';
import type { Place } from './place.ts';

/** Who said or pressed something. */
export interface Person {
  /** Null where the platform does not tell, as for an anonymous admin of a group. */
  readonly id: string | null;
  /** As others see it: from outside, so never to be trusted. */
  readonly name: string | null;
  readonly bot: boolean;
}

/** Something said on a platform. */
export interface Incoming {
  /** Names it on its platform for good: the same id again is the same message again. */
  readonly id: string;
  /** What answers and reactions refer to. */
  readonly messageId: string;
  readonly place: Place;
  readonly from: Person;
  readonly text: string;
  readonly files: readonly IncomingFile[];
  /** What it answers, if it answers something. */
  readonly repliesTo: Quote | null;
  /** It is said to us: in a direct chat, by our name, or as an answer to us. */
  readonly addressed: boolean;
  /** It takes the place of what the same message said before. */
  readonly edited: boolean;
  /** Pieces of one message carry the same group and come together: an album. */
  readonly group: string | null;
  /** When it was said, epoch milliseconds. */
  readonly at: number;
  /** What an answer to it needs and is given to `send` again. */
  readonly reply?: ReplyFacts;
}

export interface Quote {
  readonly messageId: string;
  readonly text: string;
  readonly author: string | null;
  /** It is a message of ours. */
  readonly own: boolean;
}

export type FileKind = 'image' | 'audio' | 'voice' | 'video' | 'document' | 'sticker';

export interface IncomingFile {
  readonly kind: FileKind;
  /** Stays the same for the same file. */
  readonly id: string;
  /** From outside: no path. */
  readonly name: string | null;
  readonly mime: string | null;
  /** As the platform says; it may lie. */
  readonly bytes: number | null;
  /** What is known without looking: the emoji of a sticker. */
  readonly hint: string | null;
  /** What `openFile` takes: it is kept with the message, and still good after a restart. */
  readonly ref: string;
}

/** A button of ours was pressed. */
export interface Press {
  readonly id: string;
  readonly place: Place;
  readonly from: Person;
  readonly messageId: string;
  /** What was put into the button. */
  readonly data: string;
}

/** What a platform hands to the gateway. */
export interface Inbox {
  /**
   * Takes a message. Resolves when it is durable, or refused for good: only then may the platform acknowledge it. Rejects
   * when it could not be taken now: the platform must bring it again. `unanswered` is called where nothing will be said to
   * it, for platforms that keep a place for the answer.
   */
  receive(message: Incoming, unanswered?: () => void): Promise<void>;
  /** Takes the press of a button. Returns what is shown to who pressed it, if the platform can. */
  press(press: Press): Promise<string | null>;
  /**
   * A chat goes on under another id, as a group of Telegram that grows: its conversations go on there. Resolves when that
   * is durable. A repetition changes nothing.
   */
  moved(from: string, to: string): Promise<void>;
  /** Tells of what is no message. Resolves when it is durable; rejects when it has to be brought again. */
  happened(event: PlatformEvent): Promise<void>;
  /** Takes what a program sends: it is worked on once, in a session of its own. Resolves when it is durable. */
  submit(submission: Submission): Promise<SubmissionReceipt>;
  /** The state has changed. */
  changed(): void;
}

/** What happens on a platform beside messages. */
export type PlatformEvent =
  /** The bot came into a place, or can use it no more: thrown out, blocked, deleted, archived. */
  | { readonly kind: 'added' | 'removed'; readonly place: Place; readonly reason?: string }
  /** `id` is that of the message as `Incoming` had it: what nobody has begun to answer is not answered. */
  | { readonly kind: 'message_deleted'; readonly place: Place; readonly messageId: string; readonly id: string }
  | {
      readonly kind: 'reaction_added' | 'reaction_removed';
      readonly place: Place;
      readonly messageId: string;
      readonly from: Person;
      /** As the platform names it: from outside. */
      readonly reaction: string;
    }
  | { readonly kind: 'member_joined' | 'member_left'; readonly place: Place; readonly from: Person }
  /** A message of ours, by the key it was sent with, was taken and did not arrive after all. */
  | {
      readonly kind: 'message_failed';
      readonly place: Place;
      readonly key: string;
      readonly reason: string;
      /** It came too late to be an answer: it waits until they write again. */
      readonly expired: boolean;
    };

/** Something that a program sends, not a person. Whoever may send it has proven that to the platform. */
export interface Submission {
  /** By which way in. */
  readonly route: string;
  /** Names it there: the same id within a day is the same submission again. */
  readonly id: string;
  /** What the agent is to do, or what is sent on. */
  readonly text: string;
  /** Where the answer goes, as `moirai send` takes it; null for nowhere. */
  readonly deliver: string | null;
  /** False: the text itself is sent on, and no agent sees it. */
  readonly agent: boolean;
}

export interface SubmissionReceipt {
  /** Null where a plugin kept it from becoming one. */
  readonly sessionId: string | null;
  /** Null where no agent works on it. */
  readonly turnId: string | null;
  /** It was here before; this is what became of it then. */
  readonly duplicate: boolean;
}
