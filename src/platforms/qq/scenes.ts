import type { Place } from '../platform.ts';

/** Where QQ lets bots talk: each has its own address, limits and kinds of messages. */
export type Scene = 'person' | 'group' | 'channel' | 'guild-direct';

/** Direct messages of a guild have another id than those of QQ itself, and another way there. */
const GUILD_DIRECT = 'dms-';

const MINUTE_MS = 60_000;
/** For how long a message may be answered. */
const WINDOWS: Readonly<Record<Scene, number>> = {
  person: 60 * MINUTE_MS,
  group: 5 * MINUTE_MS,
  channel: 5 * MINUTE_MS,
  'guild-direct': 5 * MINUTE_MS,
};

export function sceneOf({ type, chat }: Pick<Place, 'type' | 'chat'>): Scene {
  if (type === 'dm') return chat.startsWith(GUILD_DIRECT) ? 'guild-direct' : 'person';
  return type === 'group' ? 'group' : 'channel';
}

/** The chat of a direct message in a guild, by the guild that QQ made for the two. */
export function guildDirectChat(guildId: string): string {
  return `${GUILD_DIRECT}${guildId}`;
}

export function windowMs(place: Place): number {
  return WINDOWS[sceneOf(place)];
}

/** Below which address a place's messages and files are. */
export function pathOf(place: Place): string {
  const { chat } = place;
  switch (sceneOf(place)) {
    case 'person':
      return `/v2/users/${encodeURIComponent(chat)}`;
    case 'group':
      return `/v2/groups/${encodeURIComponent(chat)}`;
    case 'channel':
      return `/channels/${encodeURIComponent(chat)}`;
    case 'guild-direct':
      return `/dms/${encodeURIComponent(chat.slice(GUILD_DIRECT.length))}`;
  }
}
