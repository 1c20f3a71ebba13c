import { type Fields, fieldsOf, integerOf, listOf } from '../fields.ts';
import { isGoing } from './comings.ts';
import { positionOf, roomIdOf, userIdOf } from './ids.ts';

/** What a sync brings of one room. */
export interface RoomPiece {
  readonly room: string;
  /** Oldest first. */
  readonly events: readonly Fields[];
  /** What was so before these events. */
  readonly state: readonly Fields[];
  /** Where to ask for what lies before these events; null where nothing was left out. */
  readonly behind: string | null;
  /** How many people are in the room, where that is said. */
  readonly members: number | null;
}

export interface Invite {
  readonly room: string;
  readonly inviter: string;
  readonly isEncrypted: boolean;
  /** The room whose place it takes, as far as it says so. */
  readonly replaces: string | null;
}

/** We are in a room no more. */
export interface Departure {
  readonly room: string;
  /** The event that says so, where it was brought. */
  readonly event: Fields | null;
}

export interface SyncBatch {
  readonly next: string;
  readonly rooms: readonly RoomPiece[];
  readonly invites: readonly Invite[];
  readonly departures: readonly Departure[];
  /** The rooms that our account lists as talks between two; null where it says nothing new. */
  readonly direct: ReadonlySet<string> | null;
}

/** Null where the answer has no position to go on from: then it is none. */
export function parseSync(answer: unknown, self: string): SyncBatch | null {
  const fields = fieldsOf(answer);
  const next = positionOf(fields?.next_batch);
  if (fields === null || next === null) return null;
  const rooms = fieldsOf(fields.rooms);
  return {
    next,
    rooms: roomsOf(rooms?.join).map(([room, joined]) => pieceOf(room, joined)),
    invites: roomsOf(rooms?.invite).flatMap(([room, invited]) => inviteOf(room, invited, self) ?? []),
    departures: roomsOf(rooms?.leave).map(([room, left]) => ({ room, event: departureOf(left, self) })),
    direct: directRooms(eventsOf(fields.account_data).find(({ type }) => type === 'm.direct')?.content),
  };
}

function roomsOf(value: unknown): [string, Fields][] {
  return Object.entries(fieldsOf(value) ?? {}).flatMap(([id, room]): [string, Fields][] => {
    const fields = fieldsOf(room);
    return roomIdOf(id) === null || fields === null ? [] : [[id, fields]];
  });
}

function eventsOf(holder: unknown): Fields[] {
  return eventsIn(fieldsOf(holder)?.events);
}

export function eventsIn(list: unknown): Fields[] {
  return listOf(list)
    .map(fieldsOf)
    .filter((event) => event !== null);
}

function pieceOf(room: string, joined: Fields): RoomPiece {
  const timeline = fieldsOf(joined.timeline);
  const members = integerOf(fieldsOf(joined.summary)?.['m.joined_member_count']);
  return {
    room,
    events: eventsOf(timeline),
    state: eventsOf(joined.state),
    behind: timeline?.limited === true ? positionOf(timeline.prev_batch) : null,
    members,
  };
}

function inviteOf(room: string, invited: Fields, self: string): Invite | null {
  const events = eventsOf(invited.invite_state);
  const own = events.find(({ type, state_key }) => type === 'm.room.member' && state_key === self);
  const content = fieldsOf(own?.content);
  const inviter = userIdOf(own?.sender);
  if (inviter === null || content?.membership !== 'invite') return null;
  const stateOf = (wanted: string) => events.find(({ type, state_key }) => type === wanted && state_key === '');
  const replaces = predecessorIn(stateOf('m.room.create')?.content);
  return { room, inviter, isEncrypted: stateOf('m.room.encryption') !== undefined, replaces };
}

/** The room whose place a room takes, as its beginning says. */
export function predecessorIn(creation: unknown): string | null {
  return roomIdOf(fieldsOf(fieldsOf(creation)?.predecessor)?.room_id);
}

function departureOf(left: Fields, self: string): Fields | null {
  const events = [...eventsOf(left.state), ...eventsOf(left.timeline)];
  return events.findLast((event) => isGoing(event, self)) ?? null;
}

/** The rooms of `m.direct`, whoever they are with. */
export function directRooms(content: unknown): ReadonlySet<string> | null {
  const fields = fieldsOf(content);
  if (fields === null) return null;
  const ids = Object.values(fields).flatMap((rooms) => listOf(rooms).flatMap((room) => roomIdOf(room) ?? []));
  return new Set(ids);
}
