import { type Fields, fieldsOf, integerOf, listOf, nameOf } from '../fields.ts';
import type { Place } from '../platform.ts';
import { snowflakeOf } from './snowflake.ts';

/** What is known of a channel; a thread and a post of a forum are channels, too. */
export interface Channel {
  readonly id: string;
  readonly type: number;
  /** Null for a direct chat. */
  readonly guild: string | null;
  /** Of a thread: the channel or forum it is in. */
  readonly parent: string | null;
  readonly name: string | null;
  /** Of a thread: who began it. */
  readonly owner: string | null;
  /** The last message there, as far as Discord says. */
  readonly last: string | null;
}

export const FORUM_TYPES: ReadonlySet<number> = new Set([15, 16]);
const THREAD_TYPES: ReadonlySet<number> = new Set([10, 11, 12]);
/** Text, announcements, forums and media. */
const LISTED_TYPES: ReadonlySet<number> = new Set([0, 5, 15, 16]);
const DM_TYPE = 1;

/** A channel as Discord describes it; `guild` where the description leaves it out. */
export function channelOf(value: unknown, guild: string | null = null): Channel | null {
  const fields = fieldsOf(value);
  const id = snowflakeOf(fields?.id);
  const type = integerOf(fields?.type);
  if (fields === null || id === null || type === null) return null;
  return {
    id,
    type,
    guild: snowflakeOf(fields.guild_id) ?? guild,
    parent: snowflakeOf(fields.parent_id),
    name: nameOf(fields.name),
    owner: snowflakeOf(fields.owner_id),
    last: snowflakeOf(fields.last_message_id),
  };
}

export function directChannel(id: string, name: string | null = null): Channel {
  return { id, type: DM_TYPE, guild: null, parent: null, name, owner: null, last: null };
}

export function isThread({ type }: Channel): boolean {
  return THREAD_TYPES.has(type);
}

/** A channel of a guild that people write in, or begin posts in. */
export function isListed({ type }: Channel): boolean {
  return LISTED_TYPES.has(type);
}

/** Null for what nobody can talk in, such as a thread without the channel around it. */
export function placeOf(channel: Channel): Place | null {
  const { id, guild, parent } = channel;
  const name = channel.name === null ? {} : { name: channel.name };
  if (guild === null) return { type: 'dm', chat: id, ...name };
  if (!isThread(channel)) return { type: 'channel', chat: id, scope: guild, ...name };
  return parent === null ? null : { type: 'thread', chat: parent, scope: guild, thread: id, ...name };
}

const MOST_CHANNELS = 20_000;
const MOST_GUILDS = 5000;

/** The channels that Discord has told of. What is longest unused is forgotten, and asked for again. */
export class ChannelDirectory {
  readonly #channels = new Map<string, Channel>();
  /** Where Discord itself says who has come. */
  readonly #homes = new Map<string, string>();

  find(id: string): Channel | null {
    return this.#channels.get(id) ?? null;
  }

  note(channel: Channel): void {
    this.#channels.delete(channel.id);
    this.#channels.set(channel.id, channel);
    trim(this.#channels, MOST_CHANNELS);
  }

  forget(id: string): void {
    this.#channels.delete(id);
  }

  /** The channels of a guild, as it is told of when it comes; returns those that can be talked in. */
  noteGuild(fields: Fields): readonly Channel[] {
    const guild = snowflakeOf(fields.id);
    if (guild === null) return [];
    const told = [...listOf(fields.channels), ...listOf(fields.threads)];
    const channels = told.slice(0, MOST_CHANNELS).flatMap((each) => channelOf(each, guild) ?? []);
    for (const channel of channels) this.note(channel);
    const first = channels.find(({ type }) => type === 0)?.id ?? null;
    const home = snowflakeOf(fields.system_channel_id) ?? first;
    if (home !== null) this.#homes.set(guild, home);
    trim(this.#homes, MOST_GUILDS);
    return channels;
  }

  homeOf(guild: string): Channel | null {
    return this.find(this.#homes.get(guild) ?? '');
  }

  ofGuild(guild: string): readonly Channel[] {
    return [...this.#channels.values()].filter((channel) => channel.guild === guild);
  }

  forgetGuild(guild: string): void {
    for (const { id } of this.ofGuild(guild)) this.#channels.delete(id);
    this.#homes.delete(guild);
  }
}

function trim(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return;
    map.delete(key);
  }
}
