import { type Fields, fieldsOf, listOf, nameOf, textOf } from '../fields.ts';
import type { Place } from '../platform.ts';
import { idOf, placeOf } from './places.ts';
import type { Sending } from './send.ts';

const PAGE = 200;
const MOST_PAGES = 10;

/** The channels and direct chats that the app is in. Throws `SendFailure`. */
export async function listPlaces(sending: Sending, team: string, signal: AbortSignal): Promise<readonly Place[]> {
  const places: Place[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const more = cursor === null ? {} : { cursor };
    const question = { types: 'public_channel,private_channel,mpim,im', exclude_archived: true, limit: PAGE, ...more };
    const answer = await sending.call('users.conversations', question, signal);
    places.push(...listOf(answer.channels).flatMap((each) => parseChannel(fieldsOf(each), team)));
    cursor = textOf(fieldsOf(answer.response_metadata)?.next_cursor);
    if (!cursor) break;
  }
  return places;
}

function parseChannel(channel: Fields | null, team: string): Place[] {
  const id = idOf(channel?.id);
  if (channel === null || id === null) return [];
  const place = placeOf({ team, channel: id, thread: null, channelType: channel.is_im === true ? 'im' : 'channel' });
  const name = place.type === 'dm' ? null : nameOf(channel.name);
  return [{ ...place, ...(name === null ? {} : { name: `#${name}` }) }];
}
