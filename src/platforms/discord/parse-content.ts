import { type Fields, fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import type { FileKind, IncomingFile } from '../platform.ts';
import { snowflakeOf } from './snowflake.ts';

const VOICE_FLAG = 1 << 13;
/** Discord's own limit is ten. */
const MOST_FILES = 10;
const FORWARD = 1;
const LOTTIE = 3;

/** Where a file is to be had again: its address does not last, the message it hangs on does. */
export interface FileRef {
  readonly channel: string;
  readonly message: string;
  readonly file: string;
  readonly url: string;
}

/** The files of a message, and of the one that it passes on. */
export function parseFiles(message: Fields, channel: string): readonly IncomingFile[] {
  const id = snowflakeOf(message.id) ?? '';
  const isVoice = ((integerOf(message.flags) ?? 0) & VOICE_FLAG) !== 0;
  const passedOn = forwardedIn(message);
  const attachments = [...listOf(message.attachments), ...listOf(passedOn?.attachments)].slice(0, MOST_FILES);
  const stickers = listOf(message.sticker_items).slice(0, MOST_FILES);
  return [
    ...attachments.flatMap((each) => attachmentOf(fieldsOf(each), isVoice, { channel, message: id })),
    ...stickers.flatMap((each) => stickerOf(fieldsOf(each), { channel, message: id })),
  ];
}

type Origin = Pick<FileRef, 'channel' | 'message'>;

function attachmentOf(fields: Fields | null, isVoice: boolean, origin: Origin): IncomingFile[] {
  const id = snowflakeOf(fields?.id);
  const url = textOf(fields?.url, 2048);
  if (fields === null || id === null || url === null) return [];
  const mime = nameOf(fields.content_type);
  return [
    {
      kind: isVoice ? 'voice' : kindOf(mime),
      id,
      name: baseOf(nameOf(fields.filename)),
      mime,
      bytes: integerOf(fields.size),
      hint: nameOf(fields.description),
      ref: refText({ ...origin, file: id, url }),
    },
  ];
}

function kindOf(mime: string | null): FileKind {
  const [family] = (mime ?? '').split('/');
  return family === 'image' || family === 'video' || family === 'audio' ? family : 'document';
}

/** Without folders: it comes from outside. */
function baseOf(name: string | null): string | null {
  const base = name?.split(/[/\\]/).at(-1)?.trim();
  return base ? base : null;
}

/** Those that are pictures; the others are drawn by Discord's own clients only. */
function stickerOf(fields: Fields | null, origin: Origin): IncomingFile[] {
  const id = snowflakeOf(fields?.id);
  const format = integerOf(fields?.format_type);
  if (fields === null || id === null || format === null || format === LOTTIE) return [];
  const [host, ending] = format === 4 ? ['media.discordapp.net', 'gif'] : ['cdn.discordapp.com', 'png'];
  const url = `https://${host}/stickers/${id}.${ending}`;
  const mime = `image/${ending}`;
  const hint = nameOf(fields.name);
  return [{ kind: 'sticker', id, name: null, mime, bytes: null, hint, ref: refText({ ...origin, file: id, url }) }];
}

function refText({ channel, message, file, url }: FileRef): string {
  return JSON.stringify([channel, message, file, url]);
}

/** The inverse; null for what was never one. */
export function readRef(ref: string): FileRef | null {
  try {
    const [channel, message, file, url] = listOf(JSON.parse(ref)).map((each) => textOf(each, 4096));
    if (!channel || !message || !file || !url) return null;
    return { channel, message, file, url };
  } catch {
    return null;
  }
}

/** What was said, as people read it; `naming` knows who is mentioned. */
export function parseWords(message: Fields, naming: ReadonlyMap<string, string>): string {
  const passedOn = forwardedIn(message);
  const lines = [
    readable(textOf(message.content) ?? '', naming),
    passedOn === null ? '' : `[forwarded] ${readable(textOf(passedOn.content) ?? '', naming)}`.trim(),
    ...listOf(message.sticker_items).slice(0, MOST_FILES).map(unseenSticker),
    describePoll(fieldsOf(message.poll)),
  ];
  return lines.filter((line) => line !== '').join('\n');
}

function unseenSticker(sticker: unknown): string {
  const fields = fieldsOf(sticker);
  return integerOf(fields?.format_type) === LOTTIE ? `[sticker: ${nameOf(fields?.name) ?? 'without a name'}]` : '';
}

function describePoll(poll: Fields | null): string {
  if (poll === null) return '';
  const question = nameOf(fieldsOf(poll.question)?.text) ?? '';
  const answers = listOf(poll.answers).slice(0, MOST_FILES);
  const words = answers.flatMap((each) => nameOf(fieldsOf(fieldsOf(each)?.poll_media)?.text) ?? []);
  return `[poll: ${question} ${words.join(' / ')}]`;
}

/** The message that another one passes on. */
function forwardedIn(message: Fields): Fields | null {
  if (integerOf(fieldsOf(message.message_reference)?.type) !== FORWARD) return null;
  return fieldsOf(fieldsOf(listOf(message.message_snapshots)[0])?.message);
}

const MARKS = /<(?:@[!&]?(\d{1,20})|a?:(\w{1,32}):\d{1,20})>/g;

/** People and emoji by their names instead of their numbers. */
function readable(content: string, naming: ReadonlyMap<string, string>): string {
  return content.replace(MARKS, (mark, person?: string, emoji?: string) => {
    if (emoji !== undefined) return `:${emoji}:`;
    const name = naming.get(person ?? '');
    return name === undefined ? mark : `@${name}`;
  });
}
