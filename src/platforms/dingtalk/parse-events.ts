import { type Fields, listOf, textOf } from '../fields.ts';
import type { Place, PlatformEvent } from '../platform.ts';
import type { Frame } from './frames.ts';

const MOST_MEMBERS = 100;
const MEMBERS: Readonly<Record<string, 'member_joined' | 'member_left'>> = {
  chat_add_member: 'member_joined',
  chat_remove_member: 'member_left',
  chat_quit: 'member_left',
};

/** What one frame tells of; it is acknowledged when all of it is taken. */
export interface EventBatch {
  readonly id: string;
  readonly events: readonly [PlatformEvent, ...PlatformEvent[]];
}

/** What happens to the groups of an organisation; null for the rest, of which there is much. */
export function parseEvents({ headers, data, messageId }: Frame): EventBatch | null {
  const type = headers.eventType ?? textOf(data.eventType ?? data.EventType, 64) ?? '';
  const place = placeOf(data);
  if (place === null) return null;
  const [first, ...more] = eventsOf(type, place, data);
  if (first === undefined) return null;
  const id = headers.eventId ?? messageId ?? '';
  return { id: `dingtalk:event:${id}:${type}:${place.chat}`, events: [first, ...more] };
}

function eventsOf(type: string, place: Place, data: Fields): PlatformEvent[] {
  if (type === 'chat_disband') return [{ kind: 'removed', place, reason: 'the group was disbanded' }];
  const kind = Object.hasOwn(MEMBERS, type) ? MEMBERS[type] : undefined;
  if (kind === undefined) return [];
  const members = listOf(data.userId ?? data.UserId).slice(0, MOST_MEMBERS);
  return members.flatMap((member): PlatformEvent[] => {
    const id = textOf(member, 256);
    return id ? [{ kind, place, from: { id, name: null, bot: false } }] : [];
  });
}

function placeOf(data: Fields): Place | null {
  const chat = textOf(data.openConversationId ?? data.OpenConversationId, 256);
  return chat ? { type: 'group', chat } : null;
}
