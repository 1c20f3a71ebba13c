import type { Inbox } from './inbox.ts';
import type { Outgoing, ReplyContext, SentMessage } from './outgoing.ts';
import type { Place } from './place.ts';

export type * from './inbox.ts';
export type * from './outgoing.ts';
export type * from './place.ts';
export * from './send-failure.ts';

/** Where something is to be sent, in a platform's own ids; kept with the reply until it has left. */
export type Target = Readonly<Record<string, unknown>>;

/** A reply as the outbox hands it over. */
export interface SendRequest {
  /** Names it for good: the same at every attempt, and no other reply's. */
  readonly key: string;
  readonly target: Target;
  readonly text: string;
  /** What it is beside its text, in the outbox's own words. */
  readonly shape: Readonly<Record<string, unknown>> | null;
  /** The session that says it, and the conversation it is for. */
  readonly sessionId: string;
  readonly sessionKey: string;
}

/** What can send texts; the outbox asks for no more. */
export interface Sender {
  readonly name: string;
  /**
   * Sends one text. Resolves when the platform has taken it. Throws `SendFailure`; any other error is taken for one that
   * may pass.
   */
  send(request: SendRequest, signal: AbortSignal): Promise<SentMessage | null>;
  /**
   * Called before something is sent again whose outcome was lost: the message, if it arrived; `again` if the same may be
   * sent again without becoming a second message; `unknown` if nobody can say. Without it nobody can.
   */
  beforeRepetition?(request: SendRequest, signal: AbortSignal): Promise<SentMessage | 'again' | 'unknown'>;
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
  /**
   * Looks for a message that `send` may have made before its outcome was lost, by the key it was given. Null when it is
   * not there. For platforms that have no idempotency key and can be searched.
   */
  findSent?(place: Place, key: string, signal: AbortSignal): Promise<SentMessage | null>;
  /** What a text counts against `abilities.maxText` once it is rendered; without it, the text itself is counted. */
  measure?(text: string): number;
  /** What can be done at one place, where that is not the same everywhere. Ask `abilitiesAt` of `abilities.ts`. */
  abilitiesAt?(place: Place): Abilities;
  /** Begins a reply that the platform itself shows growing. */
  startStream?(place: Place, opening: StreamOpening, signal: AbortSignal): Promise<ReplyStream>;
  /** The same reply again, by its handle: also one that a process before this one began. */
  resumeStream?(place: Place, handle: string): ReplyStream;
  /** The places the bot is in, for the directory. Read each time it has connected. */
  listPlaces?(signal: AbortSignal): Promise<readonly Place[]>;
  /** Changes the text of a message that `send` made. */
  edit?(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void>;
  remove?(place: Place, messageId: string, signal: AbortSignal): Promise<void>;
  /** Shows for a few seconds that an answer is being made, to `reply` if that is known. */
  showTyping?(place: Place, signal: AbortSignal, reply?: ReplyContext): Promise<void>;
  /** Puts a sign at a message of a person; null takes it away. */
  react?(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void>;
  /** Asks the server who we are, in words for people. Throws `SendFailure` where the credential is not taken. */
  identify?(signal: AbortSignal): Promise<string>;
  /** Tells the platform's clients which commands there are, where they can show them. */
  offerCommands?(commands: readonly { name: string; summary: string }[], signal: AbortSignal): Promise<void>;
  /** Answers what the platform brings over HTTP, for the owner of the port; with success only once the inbox has it. */
  receiveWebhook?(request: WebhookRequest): Promise<WebhookAnswer>;
}

/** A request below `/platforms/<name>`. */
export interface WebhookRequest {
  readonly method: string;
  /** What stands behind the platform's own path, without a slash in front: the name of a route, or nothing. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** With names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** As it came: signatures are made over these bytes. */
  readonly body: Uint8Array;
}

export interface WebhookAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What a stream begins with. */
export interface StreamOpening {
  /** Names the stream for good: the same key begins the same stream, where the platform knows such keys. */
  readonly key: string;
  /** The message that it answers. */
  readonly reply?: ReplyContext;
}

/** A reply that grows on the platform's side: a card, a streamed message. */
export interface ReplyStream {
  /** What `resumeStream` takes. It is kept before anything is appended. */
  readonly handle: string;
  /** Shows the whole text so far. A platform that can only add to what is there shows what it can. */
  append(text: string, signal: AbortSignal): Promise<void>;
  /** Ends it with the whole reply. Throws as `send` does; ending it twice with the same text changes nothing. */
  finish(message: Outgoing, signal: AbortSignal): Promise<SentMessage>;
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
  /**
   * Sends carry a key, and the server takes the same key once: a repetition after a lost answer is no second message.
   * `answers`: only of what answers a message.
   */
  readonly idempotent?: boolean | 'answers';
  /** It shows a reply growing by itself: `startStream`. */
  readonly streams?: boolean;
  /** Places such as posts in a forum can be opened: `Place.opens`. */
  readonly opens?: boolean;
  /** Long parts of a message can stand apart from its words: `Outgoing.details`. */
  readonly details?: boolean;
  /** How often `showTyping` is called while a turn runs; every four seconds unless said. */
  readonly typingEveryMs?: number;
  /**
   * What everything that is sent needs of the last message from there. `context`: what it was, as the subject of a mail.
   * `window`: it may only be answered for a while; what comes too late waits until they write again.
   */
  readonly needsReply?: 'context' | 'window';
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
  /** What the platform is called here: its kind, or its kind and the account. */
  readonly name: string;
  /**
   * Keeps a small text under a key until the next one: a cursor, a session to resume. Null forgets it. A cursor may only
   * be kept once the inbox has everything before it.
   */
  keep(key: string, value: string | null): Promise<void>;
  recall(key: string): Promise<string | null>;
  /** Epoch milliseconds. */
  now(): number;
  /** Calls back once after `ms`; the returned function cancels. */
  after(ms: number, callback: () => void): () => void;
  /** From 0 up to 1. */
  random(): number;
  /** Tells people of trouble that no caller hears of. */
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
}
