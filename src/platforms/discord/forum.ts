import { fieldsOf, integerOf, listOf, nameOf } from '../fields.ts';
import { type Place, SendFailure, type SentMessage } from '../platform.ts';
import type { ApiCall, DiscordApi } from './api.ts';
import { channelOf, FORUM_TYPES, placeOf } from './channels.ts';
import { sentMessage } from './interactions.ts';
import { snowflakeAt, snowflakeOf } from './snowflake.ts';

const MOST_TITLE = 100;
const MOST_TAGS = 5;
const TAG_REQUIRED = 1 << 4;

/** Opens a post in a forum with its first message. Throws `SendFailure`, or the library's own errors. */
export async function openPost(
  api: DiscordApi,
  place: Place,
  call: ApiCall,
  signal: AbortSignal,
): Promise<SentMessage> {
  const { title, tags } = place.opens ?? { title: '', tags: [] };
  const forum = fieldsOf(await api.raw('GET', `/channels/${snowflakeOf(place.chat) ?? 0}`, {}, signal));
  const channel = channelOf(forum);
  if (channel === null || !FORUM_TYPES.has(channel.type)) {
    throw refused(`${channel?.name ?? place.chat} is no forum: posts can be opened in forums only`);
  }
  const applied = tagIds(listOf(forum?.available_tags), tags);
  if (applied.length === 0 && ((integerOf(forum?.flags) ?? 0) & TAG_REQUIRED) !== 0) {
    throw refused(
      `the forum demands a tag: name one with ;tags=TAG behind the title. It has ${namesOf(listOf(forum?.available_tags))}`,
    );
  }
  const body = { name: nameFor(title), applied_tags: applied, message: call.body };
  const opened = fieldsOf(await api.raw('POST', `/channels/${channel.id}/threads`, { ...call, body }, signal));
  const thread = channelOf(opened, channel.guild);
  const at = thread === null ? null : placeOf({ ...thread, parent: thread.parent ?? channel.id });
  if (thread === null || at === null) throw new SendFailure("Discord's answer names no post", 1000, 'uncertain');
  return sentMessage(opened?.message ?? { id: thread.id }, at);
}

/** A title as Discord takes it. */
function nameFor(title: string): string {
  return [...title].slice(0, MOST_TITLE).join('').toWellFormed();
}

/** Tags are told by their names, or by their numbers. */
function tagIds(available: readonly unknown[], wanted: readonly string[]): string[] {
  if (wanted.length > MOST_TAGS) throw refused(`a post has at most ${MOST_TAGS} tags`);
  return wanted.map((tag) => {
    const found = available.map(fieldsOf).find((each) => {
      return each?.id === tag || nameOf(each?.name)?.toLowerCase() === tag.toLowerCase();
    });
    const id = snowflakeOf(found?.id);
    if (id === null) throw refused(`the forum has no tag ${tag}. It has ${namesOf(available)}`);
    return id;
  });
}

function namesOf(available: readonly unknown[]): string {
  const names = available.flatMap((each) => nameOf(fieldsOf(each)?.name) ?? []);
  return names.length === 0 ? 'none' : names.join(', ');
}

function refused(problem: string): SendFailure {
  return new SendFailure(problem, null, 'bad_format');
}

/**
 * The post that was opened with a title since a moment, if there is one of ours: Discord knows no key by which it would not
 * open a second one. Where nobody knows yet who we are, Discord is asked.
 */
export async function findPost(
  api: DiscordApi,
  place: Place,
  since: number,
  known: string | null,
  signal: AbortSignal,
): Promise<SentMessage | null> {
  const guild = snowflakeOf(place.scope);
  if (guild === null || place.opens === undefined) return null;
  const title = nameOf(nameFor(place.opens.title));
  const self = known ?? fieldsOf(await api.call('GET', '/users/@me', {}, signal))?.id;
  const answer = fieldsOf(await api.call('GET', `/guilds/${guild}/threads/active`, {}, signal));
  for (const each of listOf(answer?.threads)) {
    const thread = channelOf(each, guild);
    if (thread === null || thread.parent !== place.chat || thread.owner !== self) continue;
    const isRecent = BigInt(thread.id) >= BigInt(snowflakeAt(since));
    const at = placeOf(thread);
    if (isRecent && at !== null && thread.name === title) return { messageId: thread.id, place: at };
  }
  return null;
}
