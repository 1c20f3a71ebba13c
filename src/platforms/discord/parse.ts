import { type Fields, fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import type { Incoming, Person, PlatformEvent, Press, Quote } from '../platform.ts';
import { type Channel, channelOf, directChannel, placeOf } from './channels.ts';
import { parseFiles, parseWords } from './parse-content.ts';
import { holdsTime, snowflakeOf, timeOf } from './snowflake.ts';

/** Who we are on Discord. */
export interface Self {
  readonly id: string;
  readonly name: string;
  /** The application that the bot belongs to. */
  readonly application: string;
  /** Discord tells us who comes and goes: it grants that to few. */
  readonly members: boolean;
  /** Of the server where something is said: the role that is ours alone. */
  readonly role?: string | null;
}

/** What answers an interaction, for fifteen minutes. */
export interface Interaction {
  readonly id: string;
  readonly token: string;
}

export type Parsed =
  | { readonly kind: 'message'; readonly message: Incoming }
  | { readonly kind: 'command'; readonly message: Incoming; readonly interaction: Interaction }
  | { readonly kind: 'press'; readonly press: Press; readonly interaction: Interaction }
  | { readonly kind: 'event'; readonly event: PlatformEvent };

/** What people say: words, and answers to words. All others are Discord's own notes. */
const SAID: ReadonlySet<number | null> = new Set([0, 19]);
const MOST_MENTIONED = 100;
const ADDED_TO_THREAD = 1;
const TAKEN_FROM_THREAD = 2;
const JOINED = 7;
/** How long an interaction can be answered, with a margin. */
const ANSWERABLE_MS = 14.5 * 60_000;

/** The channel that a message is in, as far as it says so itself; `find` knows the others. Null for one nobody knows. */
export function channelIn(fields: Fields, find: (id: string) => Channel | null): Channel | null {
  const id = snowflakeOf(fields.channel_id);
  if (id === null) return null;
  const known = find(id);
  if (known !== null || snowflakeOf(fields.guild_id) !== null) return known;
  return directChannel(id);
}

/**
 * What a message says to us, where it is the first that is heard of it (`fresh`) or a change of it; null for everything we
 * do not know or want. It comes from outside: whatever it is, this does not throw.
 */
export function parseMessage(message: Fields, channel: Channel, self: Self, fresh: boolean): Parsed | null {
  const id = snowflakeOf(message.id);
  const author = fieldsOf(message.author);
  if (id === null || author === null || author.id === self.id) return null;
  const type = typeIn(message);
  if (fresh && !SAID.has(type)) return parseNote(message, channel, self);
  const changedAt = fresh ? null : Date.parse(textOf(message.edited_timestamp, 64) ?? '');
  // Link previews and pins change a message, too; its words only with this time.
  if (!SAID.has(type) || Number.isNaN(changedAt)) return null;
  const from = authorOf(message, author);
  const place = placeOf(channel.guild === null ? directChannel(channel.id, from.name) : channel);
  const files = parseFiles(message, channel.id);
  const mentioned = mentionedIn(message);
  const text = withoutOurName(parseWords(message, namesOf(mentioned, self)), self);
  if (place === null || (text === '' && files.length === 0)) return null;
  const repliesTo = quoteOf(message, self);
  const isNamed = mentioned.some((person) => person.id === self.id) || isOurRole(message, self);
  const isOurs = channel.owner === self.id || repliesTo?.own === true;
  return {
    kind: 'message',
    message: {
      id: changedAt === null ? `discord:${id}` : `discord:${id}:${changedAt}`,
      messageId: id,
      place,
      from,
      text,
      files,
      repliesTo,
      addressed: place.type === 'dm' || isNamed || isOurs,
      edited: changedAt !== null,
      group: null,
      at: changedAt ?? saidAt(message, id),
    },
  };
}

function isOurRole({ mention_roles: roles }: Fields, { role = null }: Self): boolean {
  return role !== null && listOf(roles).includes(role);
}

function saidAt({ timestamp }: Fields, id: string): number {
  return holdsTime(id) ? timeOf(id) : Date.parse(textOf(timestamp, 64) ?? '') || 0;
}

function mentionedIn(message: Fields): Fields[] {
  return listOf(message.mentions)
    .slice(0, MOST_MENTIONED)
    .map(fieldsOf)
    .filter((person) => person !== null);
}

function namesOf(mentioned: readonly Fields[], self: Self): ReadonlyMap<string, string> {
  const names = mentioned.flatMap((person): [string, string][] => {
    const id = snowflakeOf(person.id);
    const { name } = personOf(person, fieldsOf(person.member));
    return id === null || name === null ? [] : [[id, name]];
  });
  return new Map([...names, [self.id, self.name], [self.role ?? self.id, self.name]]);
}

/** Who is addressed in front is no part of what is said; a name alone is all there is. */
function withoutOurName(text: string, { name }: Self): string {
  const call = `@${name}`;
  if (!text.startsWith(call)) return text;
  const rest = text.slice(call.length).replace(/^[,:]?\s+/, '');
  return rest === '' ? text : rest;
}

/** A text, where it does not say. */
function typeIn({ type }: Fields): number | null {
  return type === undefined ? 0 : integerOf(type);
}

/** Notes of Discord about people who come and go, where nothing else tells. */
function parseNote(message: Fields, channel: Channel, self: Self): Parsed | null {
  const place = placeOf(channel);
  const author = fieldsOf(message.author);
  if (place === null || author === null) return null;
  const type = integerOf(message.type);
  if (type === JOINED) {
    if (self.members) return null;
    return { kind: 'event', event: { kind: 'member_joined', place, from: personOf(author, null) } };
  }
  const person = fieldsOf(listOf(message.mentions)[0]);
  if (person === null || person.id === self.id || (type !== ADDED_TO_THREAD && type !== TAKEN_FROM_THREAD)) return null;
  const kind = type === ADDED_TO_THREAD ? 'member_joined' : 'member_left';
  return { kind: 'event', event: { kind, place, from: personOf(person, null) } };
}

function authorOf(message: Fields, author: Fields): Person {
  const person = personOf(author, fieldsOf(message.member));
  return snowflakeOf(message.webhook_id) === null ? person : { ...person, bot: true };
}

/** A person, by the name they have in the guild. */
export function personOf(user: Fields | null, member: Fields | null): Person {
  const name = nameOf(member?.nick) ?? nameOf(user?.global_name) ?? nameOf(user?.username);
  return { id: snowflakeOf(user?.id), name, bot: user?.bot === true };
}

function quoteOf(message: Fields, self: Self): Quote | null {
  const answered = fieldsOf(message.referenced_message);
  const messageId = snowflakeOf(answered?.id);
  const author = fieldsOf(answered?.author);
  if (answered === null || messageId === null || author === null || integerOf(message.type) !== 19) return null;
  const mentioned = mentionedIn(answered);
  const words = parseWords(answered, namesOf(mentioned, self));
  const [file] = parseFiles(answered, '');
  const text = words === '' && file !== undefined ? `[${file.kind}]` : words;
  return { messageId, text, author: personOf(author, null).name, own: author.id === self.id };
}

/** The press of a button, or a command; null for everything else that can be done with an application. */
export function parseInteraction(fields: Fields, find: (id: string) => Channel | null, now: number): Parsed | null {
  const id = snowflakeOf(fields.id);
  const token = textOf(fields.token, 1024);
  const guild = snowflakeOf(fields.guild_id);
  const told = channelOf(fields.channel, guild);
  const channel = told ?? channelIn(fields, find);
  const user = fieldsOf(fieldsOf(fields.member)?.user) ?? fieldsOf(fields.user);
  const data = fieldsOf(fields.data);
  if (id === null || !token || channel === null || user === null || data === null) return null;
  const from = personOf(user, fieldsOf(fields.member));
  const place = placeOf(guild === null ? directChannel(channel.id, from.name) : { ...channel, guild });
  if (place === null || !/^[\w.~-]+$/.test(token)) return null;
  const interaction = { id, token };
  if (fields.type === 3) {
    const messageId = snowflakeOf(fieldsOf(fields.message)?.id);
    const pressed = textOf(data.custom_id, 100);
    if (messageId === null || pressed === null || (data.component_type ?? 2) !== 2) return null;
    return {
      kind: 'press',
      interaction,
      press: { id: `discord:interaction:${id}`, place, from, messageId, data: pressed },
    };
  }
  const name = nameOf(data.name);
  if (fields.type !== 2 || name === null || (data.type ?? 1) !== 1) return null;
  const values = listOf(data.options).flatMap((each) => textOf(fieldsOf(each)?.value) ?? []);
  const message: Incoming = {
    id: `discord:interaction:${id}`,
    messageId: `interaction-${id}`,
    place,
    from,
    text: [`/${name}`, ...values].join(' ').trimEnd(),
    files: [],
    repliesTo: null,
    addressed: true,
    edited: false,
    group: null,
    at: now,
    reply: { data: { token }, until: now + ANSWERABLE_MS },
  };
  return { kind: 'command', interaction, message };
}
