import { type Fields, fieldsOf, integerOf, nameOf } from '../fields.ts';
import type { Incoming, Person, Place, PlatformEvent, Quote } from '../platform.ts';
import { comingOf } from './comings.ts';
import { eventIdOf, roomIdOf, serverOf, userIdOf } from './ids.ts';
import { type Names, namesUs, parseContent, withoutAddress } from './parse-content.ts';

/** What is known of an event that others refer to. */
export interface KnownEvent {
  readonly id: string;
  readonly sender: string;
  readonly kind: 'message' | 'reaction' | 'other';
  /** What was said, or the sign of a reaction. */
  readonly text: string;
  readonly thread: string | null;
  /** What it answers, or the message that a reaction is at. */
  readonly about: string | null;
}

/** The events that have to be known before an event can be understood. */
export interface References {
  /** What it changes or takes back. */
  readonly target: string | null;
  readonly answers: string | null;
  readonly thread: string | null;
}

export interface EventContext {
  readonly self: Names;
  readonly room: string;
  /** The room is a talk between two. */
  readonly direct: boolean;
  readonly roomName: string | null;
  readonly nameOf: (userId: string) => string;
  readonly known: (id: string | null) => KnownEvent | null;
}

export type Parsed =
  | { readonly kind: 'message'; readonly message: Incoming }
  | { readonly kind: 'event'; readonly event: PlatformEvent }
  /** The room goes on as another one. */
  | { readonly kind: 'moved'; readonly to: string; readonly via: string | null }
  | { readonly kind: 'encrypted' };

/** The kinds of events that mean something to us; the server is asked for no others. */
export const EVENT_TYPES = [
  'm.room.message',
  'm.sticker',
  'm.reaction',
  'm.room.redaction',
  'm.room.member',
  'm.room.name',
  'm.room.encryption',
  'm.room.encrypted',
  'm.room.tombstone',
] as const;

const NOTHING: References = { target: null, answers: null, thread: null };

export function referencesOf(event: Fields): References {
  if (event.type === 'm.room.redaction') return { ...NOTHING, target: redactedBy(event) };
  const { replaces, thread, answers } = relationOf(fieldsOf(event.content));
  return { target: replaces, thread, answers };
}

/**
 * What an event of a room says to us; null for everything we do not know or want, and for what we did ourselves. An event
 * comes from outside: whatever it is, this does not throw.
 */
export function parseEvent(event: Fields, context: EventContext): Parsed | null {
  const sender = userIdOf(event.sender);
  const id = eventIdOf(event.event_id);
  const content = fieldsOf(event.content);
  if (sender === null || id === null || content === null) return null;
  const origin = { event, id, sender, content };
  if (typeof event.state_key === 'string') return parseState(origin, event.state_key, context);
  if (sender === context.self.userId) return null;
  switch (event.type) {
    case 'm.room.message':
    case 'm.sticker':
      return parseMessage(origin, context);
    case 'm.room.encrypted':
      return { kind: 'encrypted' };
    case 'm.reaction':
      return parseReaction(origin, context);
    case 'm.room.redaction':
      return parseRedaction(origin, context);
    default:
      return null;
  }
}

/** Whether an event can mean something to us at all: nothing is asked about any other. */
export function isWorthAsking(event: Fields, self: string): boolean {
  if (event.type === 'm.room.member') return comingOf(event) !== null;
  if (event.type === 'm.room.tombstone') return typeof event.state_key === 'string';
  return SAID.has(event.type) && event.sender !== self && event.state_key === undefined;
}

const SAID: ReadonlySet<unknown> = new Set([
  'm.room.message',
  'm.sticker',
  'm.reaction',
  'm.room.redaction',
  'm.room.encrypted',
]);

interface Origin {
  readonly event: Fields;
  readonly id: string;
  readonly sender: string;
  readonly content: Fields;
}

/** What is worth knowing of an event when others refer to it. */
export function knowEvent(event: Fields): KnownEvent | null {
  const sender = userIdOf(event.sender);
  const id = eventIdOf(event.event_id);
  const content = fieldsOf(event.content);
  if (sender === null || id === null || content === null) return null;
  const { annotates, key, thread, answers } = relationOf(content);
  if (event.type === 'm.reaction') {
    return { id, sender, kind: 'reaction', text: key ?? '', thread: null, about: annotates };
  }
  const isSticker = event.type === 'm.sticker';
  if (!isSticker && event.type !== 'm.room.message') {
    return { id, sender, kind: 'other', text: '', thread: null, about: null };
  }
  const said = parseContent({ ...content, msgtype: quotable(content.msgtype) }, isSticker, answers !== null);
  const [file] = said?.files ?? [];
  const text = said?.text || (file === undefined ? '' : `[${file.kind}]`);
  return { id, sender, kind: 'message', text: text.slice(0, MOST_QUOTED).toWellFormed(), thread, about: answers };
}

const MOST_QUOTED = 1000;

/** A notice is not heard, and may be quoted all the same. */
function quotable(type: unknown): unknown {
  return type === 'm.notice' ? 'm.text' : type;
}

function parseMessage({ event, id, sender, content }: Origin, context: EventContext): Parsed | null {
  const { replaces, thread: ownThread, answers: ownAnswer } = relationOf(content);
  const changed = replaces === null ? null : context.known(replaces);
  const words = replaces === null ? content : fieldsOf(content['m.new_content']);
  // Only who said something may change it.
  if (words === null || (replaces !== null && changed?.sender !== sender)) return null;
  const thread = changed === null ? ownThread : changed.thread;
  const answers = changed === null ? ownAnswer : changed.about;
  const said = parseContent(words, event.type === 'm.sticker', answers !== null);
  if (said === null) return null;
  const repliesTo = quoteOf(answers, context);
  const isOurThread = context.known(thread)?.sender === context.self.userId;
  const isToUs = context.direct || repliesTo?.own === true || isOurThread || namesUs(words, said.text, context.self);
  return {
    kind: 'message',
    message: {
      id: messageName(context.room, id),
      messageId: replaces ?? id,
      place: placeOf(context, thread, context.direct ? context.nameOf(sender) : context.roomName),
      from: personOf(sender, context),
      text: withoutAddress(said.text, context.self),
      files: said.files,
      repliesTo,
      addressed: isToUs,
      edited: replaces !== null,
      group: null,
      at: Math.max(0, integerOf(event.origin_server_ts) ?? 0),
    },
  };
}

function parseReaction({ id, sender, content }: Origin, context: EventContext): Parsed | null {
  const { annotates: messageId, key: reaction } = relationOf(content);
  if (messageId === null || reaction === null || id === messageId) return null;
  const place = placeOf(context, context.known(messageId)?.thread ?? null);
  const from = personOf(sender, context);
  return { kind: 'event', event: { kind: 'reaction_added', place, messageId, from, reaction } };
}

function parseRedaction({ event, sender }: Origin, context: EventContext): Parsed | null {
  const messageId = redactedBy(event);
  if (messageId === null) return null;
  const redacted = context.known(messageId);
  if (redacted?.kind === 'other') return null;
  if (redacted?.kind === 'reaction') {
    const { about, text: reaction } = redacted;
    if (about === null || reaction === '') return null;
    const place = placeOf(context, context.known(about)?.thread ?? null);
    const from = personOf(sender, context);
    return { kind: 'event', event: { kind: 'reaction_removed', place, messageId: about, from, reaction } };
  }
  const place = placeOf(context, redacted?.thread ?? null);
  const id = messageName(context.room, messageId);
  return { kind: 'event', event: { kind: 'message_deleted', place, messageId, id } };
}

/** A state event has a key; what is sent like a message under the same name is none. */
function parseState({ event, sender, content }: Origin, key: string, context: EventContext): Parsed | null {
  if (event.type === 'm.room.tombstone' && key === '') {
    const to = roomIdOf(content.replacement_room);
    return to === null || to === context.room ? null : { kind: 'moved', to, via: serverOf(sender) };
  }
  if (event.type !== 'm.room.member') return null;
  const change = comingOf(event);
  const member = userIdOf(key);
  if (change === null || member === null) return null;
  const place = placeOf(context, null);
  if (member !== context.self.userId) {
    const kind = change.present ? 'member_joined' : 'member_left';
    return { kind: 'event', event: { kind, place, from: personOf(member, context) } };
  }
  if (change.present) return { kind: 'event', event: { kind: 'added', place } };
  return { kind: 'event', event: { kind: 'removed', place, reason: reasonOf(event, sender === member) } };
}

function reasonOf({ content }: Fields, byUs: boolean): string {
  const fields = fieldsOf(content);
  const words = nameOf(fields?.reason);
  const what = byUs
    ? 'the agent left'
    : fields?.membership === 'ban'
      ? 'the agent was banned'
      : 'the agent was removed';
  return words === null ? what : `${what}: ${words}`;
}

interface Relation {
  readonly replaces: string | null;
  readonly annotates: string | null;
  readonly key: string | null;
  readonly thread: string | null;
  readonly answers: string | null;
}

function relationOf(content: Fields | null): Relation {
  const relation = fieldsOf(content?.['m.relates_to']);
  const to = eventIdOf(relation?.event_id);
  const of = (type: string): string | null => (relation?.rel_type === type ? to : null);
  const thread = of('m.thread');
  const answered = eventIdOf(fieldsOf(relation?.['m.in_reply_to'])?.event_id);
  return {
    replaces: of('m.replace'),
    annotates: of('m.annotation'),
    key: nameOf(relation?.key),
    thread,
    // In a thread every message refers to the one before it, for clients that know no threads.
    answers: thread !== null && relation?.is_falling_back === true ? null : answered,
  };
}

/** Where it stands depends on the version of the room. */
function redactedBy(event: Fields): string | null {
  return eventIdOf(event.redacts) ?? eventIdOf(fieldsOf(event.content)?.redacts);
}

function quoteOf(answers: string | null, { known, self, nameOf: shownName }: EventContext): Quote | null {
  if (answers === null) return null;
  const answered = known(answers);
  if (answered === null) return { messageId: answers, text: '', author: null, own: false };
  const { sender, text } = answered;
  return { messageId: answers, text, author: shownName(sender), own: sender === self.userId };
}

/** What names a message for good. */
function messageName(room: string, eventId: string): string {
  return `matrix:${room}:${eventId}`;
}

function placeOf({ room, direct, roomName }: EventContext, thread: string | null, name = roomName): Place {
  return {
    // A thread of a direct chat is still a talk with one person.
    type: direct ? 'dm' : thread === null ? 'group' : 'thread',
    chat: room,
    ...(thread === null ? {} : { thread }),
    ...(name === null ? {} : { name }),
  };
}

function personOf(userId: string, context: EventContext): Person {
  return { id: userId, name: context.nameOf(userId), bot: false };
}
