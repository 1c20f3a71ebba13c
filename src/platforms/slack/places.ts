import type { Place } from '../platform.ts';

interface Spot {
  readonly team: string;
  readonly channel: string;
  /** The message that a thread begins with. */
  readonly thread: string | null;
  /** As Slack says, where it does. */
  readonly channelType?: unknown;
}

/** A direct chat keeps its type in a thread: the assistant of Slack talks in threads of one. */
export function placeOf({ team, channel, thread, channelType }: Spot): Place {
  const isDirect =
    typeof channelType === 'string' ? channelType === 'im' || channelType === 'app_home' : channel.startsWith('D');
  const type = isDirect ? 'dm' : thread === null ? 'channel' : 'thread';
  return { type, chat: channel, scope: team, ...(thread === null ? {} : { thread }) };
}

/** An id of Slack's, such as `C024BE91L`; null for what is none. */
export function idOf(value: unknown): string | null {
  return typeof value === 'string' && /^[\w-]{1,64}$/.test(value) ? value : null;
}

/** The time that is the name of a message in its channel, such as `1760000101.000200`. */
export function timeOf(value: unknown): string | null {
  return typeof value === 'string' && /^\d{1,12}\.\d{1,9}$/.test(value) ? value : null;
}

/** Epoch milliseconds. */
export function millisOf(time: string): number {
  return Math.round(Number(time) * 1000);
}
