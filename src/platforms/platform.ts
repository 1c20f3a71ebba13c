/** Where something is to be sent, in a platform's own ids; kept with the reply until it has left. */
export type Target = Readonly<Record<string, unknown>>;

/** What can send texts; the outbox asks for no more. */
export interface Sender {
  readonly name: string;
  /**
   * Sends one text. Resolves when the platform has taken it. Throws `SendFailure`; any other error is taken for one that
   * may pass.
   */
  send(
    target: Target,
    text: string,
    signal: AbortSignal,
    shape?: Readonly<Record<string, unknown>> | null,
  ): Promise<SentMessage | null>;
}

/**
 * A place where people talk. A platform only translates between its protocol and these shapes: it knows nothing of
 * sessions, who may talk is none of its business, and what it is told to send has been made durable before.
 */
export interface Platform {
  readonly name: string;
  readonly abilities: Abilities;
  /** How it stands now. */
  readonly state: PlatformState;
  /**
   * Begins to receive and goes on until it is stopped, whatever the network does: it connects again by itself, with
   * backoff. Does not wait for the connection. Throws only what no waiting will change, such as an unknown token.
   */
  start(inbox: Inbox): Promise<void>;
  /** Takes nothing new, lets the inbox finish what it has, and lets go of every connection. */
  stop(): Promise<void>;
  /** Sends one message that is within `abilities.maxText`. Throws `SendFailure`; other errors may pass. */
  send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage>;
  /** The bytes of a file that came in. Throws `SendFailure` when it is larger than allowed or gone. */
  openFile?(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array>;
  /** Changes the text of a message that `send` made. */
  edit?(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void>;
  remove?(place: Place, messageId: string, signal: AbortSignal): Promise<void>;
  /** Shows for a few seconds that an answer is being made. */
  showTyping?(place: Place, signal: AbortSignal): Promise<void>;
  /** Puts a sign at a message of a person; null takes it away. */
  react?(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void>;
  /** Tells the platform's clients which commands there are, where they can show them. */
  offerCommands?(commands: readonly { name: string; summary: string }[], signal: AbortSignal): Promise<void>;
  /** Takes what the platform brings over HTTP, for the owner of the port; 200 only once the inbox has it. */
  receiveWebhook?(request: {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
  }): Promise<{ readonly status: 200 | 401 | 404 | 503 }>;
}

/** What a platform can do. What it cannot is said in text instead. */
export interface Abilities {
  /** The longest text of one message. */
  readonly maxText: number;
  /** How the platform counts it: in UTF-16 units, in code points, or in bytes of UTF-8. */
  readonly counts: 'utf16' | 'points' | 'bytes';
  /** Code fences are shown as such; a split closes and opens them again. */
  readonly markdown: boolean;
  readonly edit: boolean;
  readonly remove: boolean;
  readonly typing: boolean;
  readonly reactions: boolean;
  readonly threads: boolean;
  readonly buttons: boolean;
  readonly files: { readonly in: boolean; readonly out: boolean; readonly maxBytes: number };
  /** How often one message may be changed without annoying the server. */
  readonly editEveryMs: number;
}

export type ChatType = 'dm' | 'group' | 'channel' | 'thread';

/** One place of a platform, in the platform's own ids as text. */
export interface Place {
  readonly type: ChatType;
  readonly chat: string;
  /** What the chat belongs to where ids are not unique by themselves: a guild, a workspace. */
  readonly scope?: string;
  /** A thread or topic in the chat; its replies go there. */
  readonly thread?: string;
  /** As people know it: from outside, so never to be trusted. */
  readonly name?: string;
}

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
   * when it could not be taken now: the platform must bring it again.
   */
  receive(message: Incoming): Promise<void>;
  /** Takes the press of a button. Returns what is shown to who pressed it, if the platform can. */
  press(press: Press): Promise<string | null>;
  /**
   * A chat goes on under another id, as a group of Telegram that grows: its conversations go on there. Resolves when that
   * is durable. A repetition changes nothing.
   */
  moved(from: string, to: string): Promise<void>;
  /** The state has changed. */
  changed(): void;
}

export interface Outgoing {
  /** Markdown, as models write it. */
  readonly text: string;
  /** In rows. A press comes back with the button's data, at most 64 bytes. */
  readonly buttons?: readonly (readonly Button[])[];
  readonly files?: readonly OutgoingFile[];
  /** The message it answers. */
  readonly replyTo?: string;
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
}

/** Signs every platform shows in its own way. */
export type ReactionSign = 'seen' | 'done' | 'failed';

export interface PlatformState {
  /**
   * `standby`: another process uses the same credential. `degraded`: it tries to connect again. `failed`: trying has no use.
   */
  readonly phase: 'stopped' | 'connecting' | 'connected' | 'degraded' | 'standby' | 'failed';
  /** What is wrong, for people; null when nothing is. */
  readonly problem: string | null;
  /** When the server last answered as it should, epoch milliseconds. */
  readonly lastSuccessAt: number | null;
}

/** What a platform is given besides its own settings: time, chance, and a log for trouble that no caller hears of. */
export interface PlatformRuntime {
  /** Epoch milliseconds. */
  now(): number;
  /** Calls back once after `ms`; the returned function cancels. */
  after(ms: number, callback: () => void): () => void;
  /** From 0 up to 1. */
  random(): number;
  /** Tells people of trouble that no caller hears of. */
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** Why something was not sent or fetched, and whether to try again. */
export class SendFailure extends Error {
  /** When to try again at the earliest; null when there is no use in trying. */
  readonly retryAfterMs: number | null;
  readonly kind: SendFailureKind;

  constructor(message: string, retryAfterMs: number | null, kind: SendFailureKind = 'unknown') {
    super(message);
    this.name = 'SendFailure';
    this.retryAfterMs = retryAfterMs;
    this.kind = kind;
  }

  /** The server could not be reached, or asks for patience: to try again later is to wait, not to be refused. */
  get unreachable(): boolean {
    return this.retryAfterMs !== null && this.kind !== 'unknown';
  }
}

/** `gone`: the whole chat cannot be reached any more; everything else is about this message. */
export type SendFailureKind =
  | 'gone'
  | 'forbidden'
  | 'too_long'
  | 'bad_format'
  | 'rate_limited'
  | 'transient'
  | 'unknown';
