import { type Fields, fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import type { FileKind, Incoming, IncomingFile, Person, Quote } from '../platform.ts';
import { forwardedIn, forwardedWords } from './forwarded.ts';
import { idOf, millisOf, placeOf, timeOf } from './places.ts';
import { decodeText, mentions, type Self, withoutOwnName } from './text.ts';

/** Where something comes from. */
export interface Source {
  readonly team: string;
  readonly self: Self;
}

interface Spot {
  readonly channel: string;
  readonly channelType?: unknown;
  /** It takes the place of what it said before. */
  readonly isEdit?: boolean;
}

/** The kinds of messages in which people talk; all others tell what has happened. */
const TALK: ReadonlySet<unknown> = new Set([undefined, null, 'file_share', 'thread_broadcast', 'me_message']);

/**
 * A message as Slack has it in events and in the history of a channel; null for our own and for what is no talk. It comes
 * twice where it names us, as `message` and as `app_mention`: both are the same here.
 */
export function parseMessage(
  message: Fields,
  { channel, channelType, isEdit = false }: Spot,
  { team, self }: Source,
): Incoming | null {
  const time = timeOf(message.ts);
  if (time === null || !TALK.has(message.subtype) || isOwn(message, self)) return null;
  const raw = textOf(message.text) ?? '';
  const forwarded = forwardedIn(message);
  const files = parseFiles([message, ...forwarded].flatMap(({ files: given }) => listOf(given)));
  const text = wordsOf(raw, forwarded, self);
  const edited = timeOf(fieldsOf(message.edited)?.ts);
  if ((text === '' && files.length === 0) || (isEdit && edited === null)) return null;
  const thread = threadOf(message);
  const place = placeOf({ team, channel, thread, channelType });
  const quote = place.type === 'thread' ? quoteOf(message, thread, self) : null;
  const user = idOf(message.user);
  const id = `${team}:${channel}:${time}`;
  return {
    id: isEdit ? `${id}:${edited}` : id,
    messageId: time,
    place,
    from: authorOf(message, user),
    text,
    files,
    repliesTo: quote,
    addressed: place.type === 'dm' || quote !== null || message.type === 'app_mention' || mentions(raw, self.userId),
    edited: isEdit,
    group: null,
    at: millisOf((isEdit ? edited : null) ?? time),
    reply: { data: { user, team: idOf(message.user_team) ?? idOf(message.team) ?? team }, until: null },
  };
}

/** What was written, and below it what is passed on. */
function wordsOf(raw: string, forwarded: readonly Fields[], self: Self): string {
  const words = decodeText(withoutOwnName(raw, self.userId), self);
  const lines = [words, ...forwarded.map((each) => forwardedWords(each, self))].filter((line) => line !== '');
  return textOf(lines.join('\n')) ?? '';
}

function isOwn(message: Fields, self: Self): boolean {
  return message.user === self.userId || message.bot_id === self.botId;
}

/** What begins a thread stands outside of it. */
function threadOf(message: Fields): string | null {
  const thread = timeOf(message.thread_ts);
  return thread === message.ts ? null : thread;
}

/** Slack's way of answering a message is its thread; what is said in one of ours is said to us. */
function quoteOf(message: Fields, thread: string | null, self: Self): Quote | null {
  if (thread === null || message.parent_user_id !== self.userId) return null;
  return { messageId: thread, text: '', author: null, own: true };
}

function authorOf(message: Fields, id: string | null): Person {
  const profile = fieldsOf(message.user_profile) ?? fieldsOf(message.bot_profile);
  const name = nameOf(profile?.display_name) ?? nameOf(profile?.real_name) ?? nameOf(profile?.name);
  const bot = typeof message.bot_id === 'string';
  return { id: id ?? (bot ? idOf(message.bot_id) : null), name, bot };
}

const MOST_FILES = 20;

function parseFiles(files: readonly unknown[]): readonly IncomingFile[] {
  return files.slice(0, MOST_FILES).flatMap((each) => parseFile(fieldsOf(each)) ?? []);
}

/** Files that are gone, or that the plan of the workspace hides, come as their bare places. */
function parseFile(file: Fields | null): IncomingFile | null {
  const id = idOf(file?.id);
  if (file === null || id === null || file.mode === 'tombstone' || file.mode === 'hidden_by_limit') return null;
  const mime = nameOf(file.mimetype);
  const name = nameOf(file.name)?.split(/[/\\]/).at(-1) ?? null;
  return {
    kind: kindOf(mime, file.subtype),
    id,
    name: name === '' ? null : name,
    mime,
    bytes: integerOf(file.size),
    hint: null,
    // The address of a file changes; its id is good for as long as the file is there.
    ref: id,
  };
}

function kindOf(mime: string | null, subtype: unknown): FileKind {
  if (subtype === 'slack_audio') return 'voice';
  const [family] = mime?.split('/') ?? [];
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document';
}
