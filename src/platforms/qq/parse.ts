import { type Fields, fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import type { Incoming, Person, Place, PlatformEvent, Press, Quote } from '../platform.ts';
import { idOf, messageIdOf, parseEvent, timeOf } from './parse-events.ts';
import { filesOf } from './parse-files.ts';
import { guildDirectChat, windowMs } from './scenes.ts';
import { readWords } from './words.ts';

/** Who we are on QQ; the id is empty where it is not known. */
export interface Self {
  readonly id: string;
}

export interface ParseContext {
  readonly self: Self;
  /** Epoch milliseconds. */
  readonly now: number;
  /** What a message of ours is called, by what QQ calls it where it is quoted; null for one that is not known to be ours. */
  readonly ownName: (id: string) => string | null;
}

export type Parsed =
  | { readonly kind: 'message'; readonly message: Incoming }
  /** `event` is what allows to answer. */
  | { readonly kind: 'press'; readonly press: Press; readonly interaction: string; readonly event: string | null }
  | { readonly kind: 'event'; readonly event: PlatformEvent }
  /** Somebody has looked at a message of ours that waited for that. */
  | { readonly kind: 'audit'; readonly audit: string; readonly isPassed: boolean };

/** How a kind of message is told apart: who said it, where, and whether it is said to us. */
interface Talk {
  readonly place: Place;
  readonly from: Person;
  /** It can only have been said to us. */
  readonly isOurs: boolean;
}

/**
 * What QQ tells us; null for everything we do not know or want. It comes from outside: whatever it is, this does not
 * throw.
 */
export function parsePayload(payload: unknown, context: ParseContext): Parsed | null {
  const fields = fieldsOf(payload);
  const data = fieldsOf(fields?.d);
  if (fields === null || data === null || typeof fields.t !== 'string') return null;
  if (fields.t === 'INTERACTION_CREATE') return parsePress(data, fields, context);
  if (fields.t === 'MESSAGE_AUDIT_PASS' || fields.t === 'MESSAGE_AUDIT_REJECT') return parseAudit(fields.t, data);
  const talk = Object.hasOwn(TALKS, fields.t) ? (TALKS[fields.t]?.(data) ?? null) : null;
  if (talk !== null) return parseMessage(talk, data, context);
  const event = parseEvent(fields.t, data, context.self.id);
  return event === null ? null : { kind: 'event', event };
}

const TALKS: Readonly<Record<string, (data: Fields) => Talk | null>> = {
  C2C_MESSAGE_CREATE: ({ author }) => {
    const person = fieldsOf(author);
    const chat = idOf(person?.user_openid) ?? idOf(person?.id);
    return chat === null ? null : { place: { type: 'dm', chat }, from: personOf(person, chat), isOurs: true };
  },
  GROUP_AT_MESSAGE_CREATE: (data) => groupTalk(data, true),
  // Only bots with that right get what is not said to them.
  GROUP_MESSAGE_CREATE: (data) => groupTalk(data, false),
  AT_MESSAGE_CREATE: (data) => channelTalk(data, true),
  MESSAGE_CREATE: (data) => channelTalk(data, false),
  DIRECT_MESSAGE_CREATE: ({ guild_id, author }) => {
    const guild = idOf(guild_id);
    const person = fieldsOf(author);
    if (guild === null) return null;
    const place: Place = { type: 'dm', chat: guildDirectChat(guild) };
    return { place, from: personOf(person, idOf(person?.id)), isOurs: true };
  },
};

function groupTalk({ group_openid, group_id, author }: Fields, isOurs: boolean): Talk | null {
  const chat = idOf(group_openid) ?? idOf(group_id);
  const person = fieldsOf(author);
  const from = personOf(person, idOf(person?.member_openid) ?? idOf(person?.id));
  return chat === null ? null : { place: { type: 'group', chat }, from, isOurs };
}

function channelTalk({ guild_id, channel_id, author }: Fields, isOurs: boolean): Talk | null {
  const [scope, chat] = [idOf(guild_id), idOf(channel_id)];
  const person = fieldsOf(author);
  if (scope === null || chat === null) return null;
  return { place: { type: 'channel', scope, chat }, from: personOf(person, idOf(person?.id)), isOurs };
}

function personOf(author: Fields | null, id: string | null): Person {
  return { id, name: nameOf(author?.username), bot: author?.bot === true };
}

function parseMessage({ place, from, isOurs }: Talk, data: Fields, context: ParseContext): Parsed | null {
  const { self, now } = context;
  const messageId = messageIdOf(data.id);
  // Guilds tell us what we said ourselves.
  if (messageId === null || (self.id !== '' && from.id === self.id)) return null;
  const words = readWords(textOf(data.content) ?? '', mentionsOf(data), self.id);
  const files = filesOf(listOf(data.attachments), messageId);
  const text = words.text === '' ? (cardOf(data) ?? '') : words.text;
  if (text === '' && files.length === 0) return null;
  const repliesTo = quoteOf(data, context);
  const reference = sceneValue(data, 'msg_idx');
  return {
    kind: 'message',
    message: {
      id: `qq:${messageId}`,
      ...{ messageId, place, from, text, files, repliesTo },
      addressed: isOurs || words.isToUs || repliesTo?.own === true,
      edited: false,
      group: null,
      at: timeOf(data.timestamp) ?? now,
      reply: {
        data: { msg_id: messageId, ...(reference === null ? {} : { reference }) },
        until: now + windowMs(place),
      },
    },
  };
}

const MOST_MENTIONS = 100;

/** Whom the words name, by the id they are named with; null for us. */
function mentionsOf(data: Fields): ReadonlyMap<string, string | null> {
  const named = listOf(data.mentions)
    .slice(0, MOST_MENTIONS)
    .flatMap((each) => {
      const person = fieldsOf(each);
      const id = idOf(person?.member_openid) ?? idOf(person?.user_openid) ?? idOf(person?.openid) ?? idOf(person?.id);
      if (person === null || id === null) return [];
      return [
        [id, person.is_you === true ? null : (nameOf(person.username) ?? nameOf(person.nickname) ?? id)] as const,
      ];
    });
  return new Map(named);
}

/** A card says in one line what it is. */
function cardOf(data: Fields): string | null {
  const prompt = nameOf(fieldsOf(data.ark_data)?.prompt);
  return prompt === null ? null : `[card: ${prompt}]`;
}

/** What QQ says of a message beside it, as texts of the form `name=value`. */
function sceneValue(data: Fields, name: string): string | null {
  for (const each of listOf(fieldsOf(data.message_scene)?.ext).slice(0, 32)) {
    const text = textOf(each, 1024);
    if (text?.startsWith(`${name}=`)) return messageIdOf(text.slice(name.length + 1));
  }
  return null;
}

function quoteOf(data: Fields, { ownName, self }: ParseContext): Quote | null {
  const quoted = messageIdOf(fieldsOf(data.message_reference)?.message_id) ?? sceneValue(data, 'ref_msg_idx');
  if (quoted === null) return null;
  const element = fieldsOf(listOf(data.msg_elements)[0]);
  const author = fieldsOf(element?.author);
  const own = ownName(quoted);
  const isSelf = self.id !== '' && (author?.id === self.id || author?.is_you === true);
  const said = readWords(textOf(element?.content) ?? '', new Map(), self.id).text;
  const file = fieldsOf(listOf(element?.attachments)[0]);
  return {
    messageId: own ?? quoted,
    text: said === '' && file !== null ? '[file]' : said,
    author: nameOf(author?.username),
    own: own !== null || isSelf,
  };
}

/** In which kind of chat a button was pressed. */
const CHAT_TYPES = { guild: 0, group: 1, person: 2 } as const;

function parsePress(data: Fields, payload: Fields, { ownName }: ParseContext): Parsed | null {
  const interaction = messageIdOf(data.id);
  const resolved = fieldsOf(fieldsOf(data.data)?.resolved);
  const pressed = textOf(resolved?.button_data, 1024);
  const where = pressPlace(data, resolved);
  if (interaction === null || pressed === null || where === null) return null;
  const message = messageIdOf(resolved?.message_id) ?? '';
  const press: Press = {
    id: `qq:press:${interaction}`,
    ...where,
    messageId: ownName(message) ?? message,
    data: pressed,
  };
  return { kind: 'press', press, interaction, event: messageIdOf(payload.id) };
}

function pressPlace(data: Fields, resolved: Fields | null): Pick<Press, 'place' | 'from'> | null {
  const user = idOf(resolved?.user_id);
  const [group, person] = [idOf(data.group_openid), idOf(data.user_openid)];
  const [scope, channel] = [idOf(data.guild_id), idOf(data.channel_id)];
  const by = (id: string | null): Person => ({ id, name: null, bot: false });
  switch (integerOf(data.chat_type)) {
    case CHAT_TYPES.guild:
      if (scope === null || channel === null) return null;
      return { place: { type: 'channel', scope, chat: channel }, from: by(user) };
    case CHAT_TYPES.group:
      if (group === null) return null;
      return { place: { type: 'group', chat: group }, from: by(idOf(data.group_member_openid) ?? user) };
    case CHAT_TYPES.person:
      return person === null ? null : { place: { type: 'dm', chat: person }, from: by(person) };
    default:
      return null;
  }
}

function parseAudit(kind: string, data: Fields): Parsed | null {
  const audit = messageIdOf(data.audit_id);
  return audit === null ? null : { kind: 'audit', audit, isPassed: kind === 'MESSAGE_AUDIT_PASS' };
}
