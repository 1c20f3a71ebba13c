import { type Fields, fieldsOf, integerOf, nameOf } from '../fields.ts';
import type { Place, PlatformEvent } from '../platform.ts';
import { guildDirectChat } from './scenes.ts';

/** The id of a person, a group, a guild or a channel: it becomes part of addresses and of keys. */
export function idOf(value: unknown): string | null {
  return typeof value === 'string' && /^[\w-]{1,128}$/.test(value) ? value : null;
}

/** The id of a message or an event: longer, and with more signs. */
export function messageIdOf(value: unknown): string | null {
  return typeof value === 'string' && /^[\x21-\x7e]{1,512}$/.test(value) ? value : null;
}

/** Written as a date or in seconds; null for anything else. */
export function timeOf(value: unknown): number | null {
  const time = typeof value === 'string' ? Date.parse(value) : (integerOf(value) ?? Number.NaN) * 1000;
  return Number.isSafeInteger(time) ? time : null;
}

/** What is no message: the bot comes or goes, somebody other than `self` reacts or takes a message back. */
export function parseEvent(kind: string, data: Fields, self: string): PlatformEvent | null {
  return Object.hasOwn(EVENTS, kind) ? (EVENTS[kind]?.(data, self) ?? null) : null;
}

const EVENTS: Readonly<Record<string, (data: Fields, self: string) => PlatformEvent | null>> = {
  FRIEND_ADD: (data) => personChange(data, 'added'),
  FRIEND_DEL: (data) => personChange(data, 'removed', 'the person removed the bot'),
  C2C_MSG_RECEIVE: (data) => personChange(data, 'added'),
  C2C_MSG_REJECT: (data) => personChange(data, 'removed', 'the person wants no messages but answers'),
  GROUP_ADD_ROBOT: (data) => groupChange(data, 'added'),
  GROUP_DEL_ROBOT: (data) => groupChange(data, 'removed', 'the bot was removed from the group'),
  GROUP_MSG_RECEIVE: (data) => groupChange(data, 'added'),
  GROUP_MSG_REJECT: (data) => groupChange(data, 'removed', 'the group wants no messages but answers'),
  CHANNEL_CREATE: (data) => channelChange(data, 'added'),
  CHANNEL_DELETE: (data) => channelChange(data, 'removed', 'the channel was deleted'),
  MESSAGE_REACTION_ADD: (data, self) => reaction(data, 'reaction_added', self),
  MESSAGE_REACTION_REMOVE: (data, self) => reaction(data, 'reaction_removed', self),
  MESSAGE_DELETE: deletion,
  PUBLIC_MESSAGE_DELETE: deletion,
  DIRECT_MESSAGE_DELETE: (data) => {
    const guild = idOf(fieldsOf(data.message)?.guild_id);
    return guild === null ? null : deletionAt({ type: 'dm', chat: guildDirectChat(guild) }, data);
  },
};

function changed(kind: 'added' | 'removed', place: Place, reason: string | undefined): PlatformEvent {
  return { kind, place, ...(reason === undefined ? {} : { reason }) };
}

function personChange(data: Fields, kind: 'added' | 'removed', reason?: string): PlatformEvent | null {
  const chat = idOf(data.openid) ?? idOf(data.user_openid);
  return chat === null ? null : changed(kind, { type: 'dm', chat }, reason);
}

function groupChange(data: Fields, kind: 'added' | 'removed', reason?: string): PlatformEvent | null {
  const chat = idOf(data.group_openid);
  return chat === null ? null : changed(kind, { type: 'group', chat }, reason);
}

function channelChange(data: Fields, kind: 'added' | 'removed', reason?: string): PlatformEvent | null {
  const [scope, chat, name] = [idOf(data.guild_id), idOf(data.id), nameOf(data.name)];
  if (scope === null || chat === null) return null;
  return changed(kind, { type: 'channel', scope, chat, ...(name === null ? {} : { name }) }, reason);
}

function channelOf({ guild_id, channel_id }: Fields): Place | null {
  const [scope, chat] = [idOf(guild_id), idOf(channel_id)];
  return scope === null || chat === null ? null : { type: 'channel', scope, chat };
}

/** Whether what is reacted to is a message; it can be a post of a forum, too. */
const MESSAGE_TARGETS: ReadonlySet<unknown> = new Set([0, 'ReactionTargetType_MSG']);

function reaction(data: Fields, kind: 'reaction_added' | 'reaction_removed', self: string): PlatformEvent | null {
  const place = channelOf(data);
  const target = fieldsOf(data.target);
  const messageId = messageIdOf(target?.id);
  const emoji = fieldsOf(data.emoji);
  const id = nameOf(emoji?.id);
  const from = { id: idOf(data.user_id), name: null, bot: false };
  if (place === null || messageId === null || id === null || !MESSAGE_TARGETS.has(target?.type)) return null;
  // Signs of ours at messages that are being answered.
  if (self !== '' && from.id === self) return null;
  return { kind, place, messageId, from, reaction: `${integerOf(emoji?.type) ?? 1}:${id}` };
}

function deletion(data: Fields): PlatformEvent | null {
  const place = channelOf(fieldsOf(data.message) ?? {});
  return place === null ? null : deletionAt(place, data);
}

function deletionAt(place: Place, data: Fields): PlatformEvent | null {
  const messageId = messageIdOf(fieldsOf(data.message)?.id);
  return messageId === null ? null : { kind: 'message_deleted', place, messageId, id: `qq:${messageId}` };
}
