import { fieldsOf, listOf } from '../fields.ts';
import { type Place, SendFailure } from '../platform.ts';
import type { DiscordApi } from './api.ts';
import { type Channel, channelOf, FORUM_TYPES, isListed, placeOf } from './channels.ts';
import { snowflakeOf } from './snowflake.ts';

const GUILDS_IN_PAGE = 200;
const MOST_PLACES = 2000;
const ARCHIVED_POSTS = 50;

/** The channels, forums, threads and posts of every server the bot is in. Throws `SendFailure`. */
export async function listPlaces(api: DiscordApi, signal: AbortSignal): Promise<readonly Place[]> {
  const places: Place[] = [];
  for await (const guild of guildsOf(api, signal)) {
    const channels = await channelsOf(api, guild, signal);
    places.push(...channels.flatMap((channel) => placeOf(channel) ?? []));
    if (places.length >= MOST_PLACES) break;
  }
  return places.slice(0, MOST_PLACES);
}

async function* guildsOf(api: DiscordApi, signal: AbortSignal): AsyncGenerator<string> {
  for (let after = '0'; ; ) {
    const query = { limit: String(GUILDS_IN_PAGE), after };
    const page = listOf(await api.call('GET', '/users/@me/guilds', { query }, signal));
    const ids = page.flatMap((each) => snowflakeOf(fieldsOf(each)?.id) ?? []);
    yield* ids;
    const last = ids.at(-1);
    if (last === undefined || page.length < GUILDS_IN_PAGE) return;
    after = last;
  }
}

async function channelsOf(api: DiscordApi, guild: string, signal: AbortSignal): Promise<Channel[]> {
  const told = await allowed(() => api.call('GET', `/guilds/${guild}/channels`, {}, signal));
  const channels = read(told, guild).filter(isListed);
  const active = fieldsOf(await allowed(() => api.call('GET', `/guilds/${guild}/threads/active`, {}, signal)));
  const threads = read(active?.threads, guild);
  const forums = channels.filter(({ type }) => FORUM_TYPES.has(type));
  const archived: Channel[] = [];
  for (const { id } of forums) {
    const query = { limit: String(ARCHIVED_POSTS) };
    const route = `/channels/${id}/threads/archived/public` as const;
    const posts = fieldsOf(await allowed(() => api.call('GET', route, { query }, signal)));
    archived.push(...readOpen(posts?.threads, guild));
  }
  return [...channels, ...threads, ...archived];
}

function read(told: unknown, guild: string): Channel[] {
  return listOf(told).flatMap((each) => channelOf(each, guild) ?? []);
}

/** Without those that are locked: nothing can be sent there. */
function readOpen(told: unknown, guild: string): Channel[] {
  return read(
    listOf(told).filter((each) => fieldsOf(fieldsOf(each)?.thread_metadata)?.locked !== true),
    guild,
  );
}

/** What one channel or server refuses keeps nobody from the others. */
async function allowed(call: () => Promise<unknown>): Promise<unknown> {
  try {
    return await call();
  } catch (thrown) {
    if (thrown instanceof SendFailure && thrown.retryAfterMs === null) return null;
    throw thrown;
  }
}
