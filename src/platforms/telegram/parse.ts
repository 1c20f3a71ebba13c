import { type Fields, fieldsOf, integerOf, integerText, listOf, nameOf, textOf } from '../fields.ts';
import type { ChatType, Incoming, Person, Place, PlatformEvent, Press, Quote } from '../platform.ts';
import { describeContent, fullName, parseFiles } from './parse-media.ts';

/** Who we are on Telegram. */
export interface Self {
  readonly id: number;
  readonly username: string;
}

export type Parsed =
  | { readonly kind: 'message'; readonly message: Incoming }
  | { readonly kind: 'press'; readonly press: Press; readonly query: string }
  | { readonly kind: 'event'; readonly event: PlatformEvent }
  /** A group has become another chat. */
  | { readonly kind: 'moved'; readonly from: string; readonly to: string };

/** The kinds of updates that mean something to us; the server sends no others. */
export const UPDATE_KINDS = [
  'message',
  'edited_message',
  'channel_post',
  'edited_channel_post',
  'callback_query',
  'my_chat_member',
  'chat_member',
  'message_reaction',
] as const;

const CHAT_TYPES: Readonly<Record<string, ChatType>> = {
  private: 'dm',
  group: 'group',
  supergroup: 'group',
  channel: 'channel',
};

/**
 * What an update says to us; null for everything we do not know or want. An update comes from outside: whatever it is,
 * this does not throw.
 */
export function parseUpdate(update: unknown, self: Self): Parsed | null {
  const fields = fieldsOf(update);
  if (fields === null) return null;
  if (fields.callback_query !== undefined) return parsePress(fieldsOf(fields.callback_query));
  const event = parseEvent(fields);
  if (event !== null) return { kind: 'event', event };
  const fresh = fieldsOf(fields.message ?? fields.channel_post);
  if (fresh !== null) return parseMove(fresh) ?? parseMessage(fresh, self, false);
  const edited = fieldsOf(fields.edited_message ?? fields.edited_channel_post);
  // A live location is edited every few seconds: that is no message.
  if (edited === null || edited.location !== undefined) return null;
  return parseMessage(edited, self, true);
}

function parseMessage(message: Fields, self: Self, edited: boolean): Parsed | null {
  const place = placeOf(message);
  const messageId = integerText(message.message_id);
  if (place === null || messageId === null || isOwn(message, self)) return null;
  const files = parseFiles(message);
  const said = wordsOf(message);
  if (said === null && files.length === 0) return null;
  const command = commandOf(said ?? '', self);
  if (command.addressee === 'other' && place.type !== 'dm') return null;
  const repliesTo = quoteOf(message, self);
  const isDirect = place.type === 'dm' || command.addressee === 'us' || repliesTo?.own === true;
  const second = (edited ? integerOf(message.edit_date) : null) ?? integerOf(message.date) ?? 0;
  return {
    kind: 'message',
    message: {
      id: `telegram:${place.chat}:${messageId}${edited ? `:${second}` : ''}`,
      messageId,
      place,
      from: authorOf(message),
      text: command.text,
      files,
      repliesTo,
      addressed: isDirect || mentions(command.text, self.username),
      edited,
      group: nameOf(message.media_group_id),
      at: second * 1000,
    },
  };
}

const PRESENT: ReadonlySet<unknown> = new Set(['creator', 'administrator', 'member', 'restricted']);

/** Whether a member is there; who may not do everything stays restricted when they leave. */
function isPresent(member: Fields | null): boolean {
  return PRESENT.has(member?.status) && member?.is_member !== false;
}

/** What is no message: the bot or somebody comes or goes, somebody reacts. */
function parseEvent(update: Fields): PlatformEvent | null {
  const own = fieldsOf(update.my_chat_member);
  const other = fieldsOf(update.chat_member);
  const changed = own ?? other;
  if (changed !== null) {
    const place = placeOf(changed);
    const member = fieldsOf(changed.new_chat_member);
    const [was, is] = [isPresent(fieldsOf(changed.old_chat_member)), isPresent(member)];
    if (place === null || member === null || was === is) return null;
    if (own !== null) return { kind: is ? 'added' : 'removed', place, ...(is ? {} : { reason: REMOVED }) };
    return { kind: is ? 'member_joined' : 'member_left', place, from: personOf(fieldsOf(member.user)) };
  }
  return parseReaction(fieldsOf(update.message_reaction));
}

const REMOVED = 'the bot was removed or blocked';

function parseReaction(reaction: Fields | null): PlatformEvent | null {
  const place = reaction === null ? null : placeOf(reaction);
  const messageId = integerText(reaction?.message_id);
  if (reaction === null || place === null || messageId === null) return null;
  const [before, after] = [emojisOf(reaction.old_reaction), emojisOf(reaction.new_reaction)];
  const added = after.find((emoji) => !before.includes(emoji));
  const removed = before.find((emoji) => !after.includes(emoji));
  const shown = added ?? removed;
  if (shown === undefined) return null;
  const kind = added === undefined ? 'reaction_removed' : 'reaction_added';
  return { kind, place, messageId, from: personOf(fieldsOf(reaction.user)), reaction: shown };
}

function emojisOf(reactions: unknown): string[] {
  return listOf(reactions).flatMap((each) => nameOf(fieldsOf(each)?.emoji ?? fieldsOf(each)?.custom_emoji_id) ?? []);
}

/** The group is told of its new id, and the new chat of its old one. */
function parseMove(message: Fields): Parsed | null {
  const chat = integerText(fieldsOf(message.chat)?.id);
  const to = integerText(message.migrate_to_chat_id);
  const from = integerText(message.migrate_from_chat_id);
  if (chat === null || (to === null && from === null)) return null;
  return { kind: 'moved', from: from ?? chat, to: to ?? chat };
}

function parsePress(query: Fields | null): Parsed | null {
  const message = fieldsOf(query?.message);
  const id = nameOf(query?.id);
  const data = textOf(query?.data, 64);
  const place = message === null ? null : placeOf(message);
  const messageId = integerText(message?.message_id);
  if (query === null || id === null || data === null || place === null || messageId === null) return null;
  const from = personOf(fieldsOf(query.from));
  const press = { id: `telegram:callback:${id}`, place, from, messageId, data };
  return { kind: 'press', press, query: id };
}

function placeOf(message: Fields): Place | null {
  const chat = fieldsOf(message.chat);
  const id = integerText(chat?.id);
  const type = typeof chat?.type === 'string' && Object.hasOwn(CHAT_TYPES, chat.type) ? CHAT_TYPES[chat.type] : null;
  if (chat === null || id === null || !type) return null;
  const topic = message.is_topic_message === true ? integerText(message.message_thread_id) : null;
  const name = nameOf(chat.title) ?? fullName(chat);
  return {
    // A topic of a direct chat is still a talk with one person.
    type: topic !== null && type === 'group' ? 'thread' : type,
    chat: id,
    ...(topic === null ? {} : { thread: topic }),
    ...(name === null ? {} : { name }),
  };
}

function isOwn(message: Fields, self: Self): boolean {
  return fieldsOf(message.from)?.id === self.id;
}

/** What was said: a text, the words under a file, or what else there is; null for a service message. */
function wordsOf(message: Fields): string | null {
  return textOf(message.text) ?? textOf(message.caption) ?? describeContent(message);
}

function authorOf(message: Fields): Person {
  const voice = fieldsOf(message.sender_chat);
  if (voice === null) return personOf(fieldsOf(message.from));
  // A person speaks as a chat. As this one: an anonymous admin, or a post of the channel. As another: that has an id.
  const id = voice.id === fieldsOf(message.chat)?.id ? null : integerText(voice.id);
  return { id, name: nameOf(message.author_signature) ?? nameOf(voice.title), bot: false };
}

function personOf(user: Fields | null): Person {
  const name = user === null ? null : (fullName(user) ?? nameOf(user.username));
  return { id: integerText(user?.id), name, bot: user?.is_bot === true };
}

function quoteOf(message: Fields, self: Self): Quote | null {
  const answered = fieldsOf(message.reply_to_message);
  const messageId = integerText(answered?.message_id);
  if (answered === null || messageId === null) return null;
  // Every message of a topic answers the one that began the topic.
  if (answered.forum_topic_created !== undefined) return null;
  if (message.is_topic_message === true && integerText(message.message_thread_id) === messageId) return null;
  const part = textOf(fieldsOf(message.quote)?.text);
  const [file] = parseFiles(answered);
  const text = part ?? wordsOf(answered) ?? (file === undefined ? '' : `[${file.kind}]`);
  return { messageId, text, author: authorOf(answered).name, own: isOwn(answered, self) };
}

interface Command {
  /** Without the name of the bot it is for. */
  readonly text: string;
  readonly addressee: 'us' | 'other' | null;
}

function commandOf(text: string, self: Self): Command {
  const [whole, command = '', name = ''] = /^(\/\w{1,64})@(\w{1,64})(?!\S)/.exec(text) ?? [];
  if (whole === undefined) return { text, addressee: null };
  if (name.toLowerCase() !== self.username.toLowerCase()) return { text, addressee: 'other' };
  return { text: command + text.slice(whole.length), addressee: 'us' };
}

function mentions(text: string, username: string): boolean {
  return new RegExp(`(?<!\\w)@${RegExp.escape(username)}(?!\\w)`, 'i').test(text);
}
