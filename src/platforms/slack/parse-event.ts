import { type Fields, fieldsOf, nameOf } from '../fields.ts';
import type { Person, Place, PlatformEvent } from '../platform.ts';
import { parseMessage, type Source } from './parse-message.ts';
import type { Parsed } from './parsed.ts';
import { idOf, placeOf, timeOf } from './places.ts';
import type { Self } from './text.ts';

/** What the body of an event says to us; null for what we do not know or want. Never throws. */
export function parseEvent(body: Fields, self: Self): Parsed | null {
  const event = fieldsOf(body.event);
  if (event === null || typeof event.type !== 'string') return null;
  const source = { team: idOf(body.team_id) ?? self.teamId, self };
  if (event.type === 'message' || event.type === 'app_mention') return parseMessageEvent(event, source);
  if (event.type === 'assistant_thread_started') return parseOpened(fieldsOf(event.assistant_thread));
  if (event.type === 'app_uninstalled' || event.type === 'tokens_revoked') return { kind: 'revoked' };
  const id = nameOf(body.event_id) ?? `${event.type}:${nameOf(event.event_ts) ?? ''}`;
  if (event.type === 'channel_id_changed') return parseMove(event, id);
  const happened = parseHappening(event.type, event, source);
  return happened === null ? null : { kind: 'event', id, event: happened };
}

function parseMessageEvent(event: Fields, source: Source): Parsed | null {
  const channel = idOf(event.channel);
  if (channel === null) return null;
  const spot = { channel, channelType: event.channel_type };
  if (event.subtype === 'message_deleted') return parseDeletion(event, source);
  if (event.subtype !== 'message_changed') return messageOf(parseMessage(event, spot, source));
  const changed = fieldsOf(event.message);
  const before = fieldsOf(event.previous_message);
  if (changed === null) return null;
  // What begins a thread stays as an empty place when it is deleted.
  if (changed.subtype === 'tombstone') return parseDeletion({ ...event, deleted_ts: changed.ts }, source);
  // A link that was looked at changes a message as well, and says the same afterwards.
  if (fieldsOf(changed.edited) === null || changed.text === before?.text) return null;
  return messageOf(parseMessage(changed, { ...spot, isEdit: true }, source));
}

function messageOf(message: ReturnType<typeof parseMessage>): Parsed | null {
  return message === null ? null : { kind: 'message', message };
}

function parseDeletion(event: Fields, { team, self }: Source): Parsed | null {
  const channel = idOf(event.channel);
  const messageId = timeOf(event.deleted_ts);
  const before = fieldsOf(event.previous_message);
  if (channel === null || messageId === null || before?.user === self.userId) return null;
  const thread = timeOf(before?.thread_ts);
  const inThread = thread === messageId ? null : thread;
  const place = placeOf({ team, channel, thread: inThread, channelType: event.channel_type });
  const id = `${team}:${channel}:${messageId}`;
  return { kind: 'event', id: `${id}:deleted`, event: { kind: 'message_deleted', place, messageId, id } };
}

function parseOpened(opened: Fields | null): Parsed | null {
  const channel = idOf(opened?.channel_id);
  const thread = timeOf(opened?.thread_ts);
  return channel === null || thread === null ? null : { kind: 'opened', channel, thread };
}

function parseMove(event: Fields, id: string): Parsed | null {
  const [from, to] = [idOf(event.old_channel_id), idOf(event.new_channel_id)];
  return from === null || to === null ? null : { kind: 'moved', id, from, to };
}

/** Reasons for which a channel can be used no more. */
const LEFT: Readonly<Record<string, string>> = {
  channel_left: 'the app was removed from the channel',
  group_left: 'the app was removed from the channel',
  channel_archive: 'the channel was archived',
  group_archive: 'the channel was archived',
  channel_deleted: 'the channel was deleted',
  group_deleted: 'the channel was deleted',
};

function parseHappening(type: string, event: Fields, { team, self }: Source): PlatformEvent | null {
  if (type === 'reaction_added' || type === 'reaction_removed') return parseReaction(type, event, { team, self });
  const channel = idOf(event.channel);
  if (channel === null) return null;
  const place: Place = placeOf({ team, channel, thread: null });
  const reason = Object.hasOwn(LEFT, type) ? LEFT[type] : undefined;
  if (reason !== undefined) return { kind: 'removed', place, reason };
  if (type !== 'member_joined_channel' && type !== 'member_left_channel') return null;
  const user = idOf(event.user);
  if (user === null) return null;
  if (user !== self.userId) {
    return { kind: type === 'member_joined_channel' ? 'member_joined' : 'member_left', place, from: personOf(user) };
  }
  return type === 'member_joined_channel'
    ? { kind: 'added', place }
    : { kind: 'removed', place, reason: 'the app was removed from the channel' };
}

function parseReaction(
  kind: 'reaction_added' | 'reaction_removed',
  event: Fields,
  { team, self }: Source,
): PlatformEvent | null {
  const item = fieldsOf(event.item);
  const channel = idOf(item?.channel);
  const messageId = timeOf(item?.ts);
  const reaction = nameOf(event.reaction);
  const user = idOf(event.user);
  if (item?.type !== 'message' || channel === null || messageId === null || reaction === null) return null;
  // Our own signs are no news.
  if (user === null || user === self.userId) return null;
  const place = placeOf({ team, channel, thread: null });
  return { kind, place, messageId, from: personOf(user), reaction };
}

function personOf(id: string): Person {
  return { id, name: null, bot: false };
}
