import { type Fields, fieldsOf, listOf, nameOf } from '../fields.ts';
import type { PlatformEvent } from '../platform.ts';
import { type Channel, type ChannelDirectory, channelOf, isListed, isThread, placeOf } from './channels.ts';
import { channelIn, personOf, type Self } from './parse.ts';
import { snowflakeOf } from './snowflake.ts';

/** More are never deleted at once. */
const MOST_DELETED = 100;

/** What happened beside messages; nothing for everything we do not know. Never throws. */
export function parseEvents(
  type: string,
  fields: Fields,
  directory: ChannelDirectory,
  self: Self,
): readonly PlatformEvent[] {
  switch (type) {
    case 'MESSAGE_DELETE':
      return deleted([fields.id], fields, directory);
    case 'MESSAGE_DELETE_BULK':
      return deleted(listOf(fields.ids).slice(0, MOST_DELETED), fields, directory);
    case 'MESSAGE_REACTION_ADD':
      return reacted('reaction_added', fields, directory, self);
    case 'MESSAGE_REACTION_REMOVE':
      return reacted('reaction_removed', fields, directory, self);
    case 'GUILD_MEMBER_ADD':
      return moved('member_joined', fields, directory, self);
    case 'GUILD_MEMBER_REMOVE':
      return moved('member_left', fields, directory, self);
    default:
      return changed(type, fields);
  }
}

function deleted(ids: readonly unknown[], fields: Fields, directory: ChannelDirectory): PlatformEvent[] {
  const channel = channelIn(fields, (id) => directory.find(id));
  const place = channel === null ? null : placeOf(channel);
  if (place === null) return [];
  return ids.flatMap((each): PlatformEvent[] => {
    const messageId = snowflakeOf(each);
    return messageId === null ? [] : [{ kind: 'message_deleted', place, messageId, id: `discord:${messageId}` }];
  });
}

function reacted(
  kind: 'reaction_added' | 'reaction_removed',
  fields: Fields,
  directory: ChannelDirectory,
  self: Self,
): PlatformEvent[] {
  const channel = channelIn(fields, (id) => directory.find(id));
  const place = channel === null ? null : placeOf(channel);
  const messageId = snowflakeOf(fields.message_id);
  const userId = snowflakeOf(fields.user_id);
  const emoji = fieldsOf(fields.emoji);
  const reaction = nameOf(emoji?.name) ?? snowflakeOf(emoji?.id);
  if (place === null || messageId === null || userId === null || reaction === null || userId === self.id) return [];
  const member = fieldsOf(fields.member);
  const from = { ...personOf(fieldsOf(member?.user), member), id: userId };
  return [{ kind, place, messageId, from, reaction }];
}

/** Somebody came into a guild, or left it: told where Discord itself says so. */
function moved(
  kind: 'member_joined' | 'member_left',
  fields: Fields,
  directory: ChannelDirectory,
  self: Self,
): PlatformEvent[] {
  const home = directory.homeOf(snowflakeOf(fields.guild_id) ?? '');
  const place = home === null ? null : placeOf(home);
  const user = fieldsOf(fields.user);
  if (place === null || user === null || user.id === self.id || snowflakeOf(user.id) === null) return [];
  return [{ kind, place, from: personOf(user, fields) }];
}

/** A channel, a thread or a post came or went. */
function changed(type: string, fields: Fields): PlatformEvent[] {
  const channel = channelOf(fields);
  const place = channel === null ? null : placeOf(channel);
  if (channel === null || place === null || place.type === 'dm') return [];
  if (type === 'CHANNEL_CREATE' && isListed(channel)) return [{ kind: 'added', place }];
  if (type === 'THREAD_CREATE' && isNew(fields)) return [{ kind: 'added', place }];
  if (type === 'CHANNEL_DELETE') return [removed(channel, 'the channel was deleted')];
  if (type === 'THREAD_DELETE') return [removed(channel, 'the thread was deleted')];
  const state = fieldsOf(fields.thread_metadata);
  const isShut = state?.archived === true && state.locked === true;
  if (type === 'THREAD_UPDATE' && isThread(channel) && isShut) return [removed(channel, 'the thread was locked')];
  return [];
}

/** A new thread, or one that we were let into; Discord tells of others as well when they come back. */
function isNew(fields: Fields): boolean {
  return fields.newly_created === true || fieldsOf(fields.member) !== null;
}

function removed(channel: Channel, reason: string): PlatformEvent {
  const place = placeOf(channel) ?? { type: 'channel', chat: channel.id };
  return { kind: 'removed', place, reason };
}
