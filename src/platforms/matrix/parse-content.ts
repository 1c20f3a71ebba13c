import { type Fields, fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import type { FileKind, IncomingFile } from '../platform.ts';
import { userIdOf } from './ids.ts';
import { isMedia } from './media-address.ts';

/** What a message holds, whoever said it. */
export interface Content {
  readonly text: string;
  readonly files: readonly IncomingFile[];
}

/** More than an event has room for. */
const MOST_BODY = 65_536;

const FILE_KINDS: Readonly<Record<string, FileKind>> = {
  'm.image': 'image',
  'm.audio': 'audio',
  'm.video': 'video',
  'm.file': 'document',
};

/** Null for what is no message of a person: a notice of another program, a step of a protocol, an empty one. */
export function parseContent(content: Fields, isSticker: boolean, isAnswer: boolean): Content | null {
  const type = textOf(content.msgtype, 64) ?? '';
  const body = textOf(content.body, MOST_BODY);
  if (isSticker) return withFile(content, 'sticker', '', body);
  // Programs that answer each other's notices would never end.
  if (body === null || type === 'm.notice' || type.startsWith('m.key.verification')) return null;
  const kind = Object.hasOwn(FILE_KINDS, type) ? FILE_KINDS[type] : undefined;
  if (kind !== undefined) {
    const caption = content.filename === undefined || content.filename === content.body ? '' : body;
    return withFile(content, isVoice(content) ? 'voice' : kind, caption, null);
  }
  const said = isAnswer ? withoutQuote(body) : body;
  return said.trim() === '' ? null : { text: type === 'm.emote' ? `* ${said}` : said, files: [] };
}

function withFile(content: Fields, kind: FileKind, text: string, hint: string | null): Content | null {
  const file = fileOf(content, kind, hint);
  if (file !== null) return { text, files: [file] };
  if (fieldsOf(content.file) === null) return text === '' ? null : { text, files: [] };
  return { text: `${text}\n[an encrypted file, which cannot be read here]`.trim(), files: [] };
}

function fileOf(content: Fields, kind: FileKind, hint: string | null): IncomingFile | null {
  const url = textOf(content.url, 1024);
  if (url === null || !isMedia(url)) return null;
  const info = fieldsOf(content.info);
  const name = nameOf(content.filename) ?? nameOf(content.body);
  const bytes = integerOf(info?.size);
  return {
    kind,
    id: url,
    name: kind === 'sticker' ? null : nameOf(name?.split(/[/\\]/).at(-1)),
    mime: nameOf(info?.mimetype),
    bytes: bytes !== null && bytes >= 0 ? bytes : null,
    hint: hint === null ? null : nameOf(hint),
    ref: url,
  };
}

function isVoice(content: Fields): boolean {
  return fieldsOf(content['org.matrix.msc3245.voice']) !== null || fieldsOf(content['m.voice']) !== null;
}

/** Older clients write what they answer in front of the answer, as lines that begin with `>`. */
function withoutQuote(body: string): string {
  if (!body.startsWith('>')) return body;
  let at = 0;
  while (body.charAt(at) === '>') {
    const end = body.indexOf('\n', at);
    if (end < 0) return '';
    at = end + 1;
  }
  return body.charAt(at) === '\n' ? body.slice(at + 1) : body.slice(at);
}

/** How we are called. */
export interface Names {
  readonly userId: string;
  readonly displayName: string | null;
}

/** Whether a message names us: by a mark of its own, a link to us, our id, or the name that others see. */
export function namesUs(content: Fields, text: string, { userId, displayName }: Names): boolean {
  const marked = listOf(fieldsOf(content['m.mentions'])?.user_ids).slice(0, MOST_MARKED).map(userIdOf);
  if (marked.includes(userId)) return true;
  const formatted = textOf(content.formatted_body) ?? '';
  const links = [userId, encodeURIComponent(userId)].map((id) => `https://matrix.to/#/${id}`);
  if (links.some((link) => formatted.includes(`${link}"`) || formatted.includes(`${link}'`))) return true;
  return [userId, displayName].some((name) => name !== null && hasWord(text, name));
}

const MOST_MARKED = 1000;

/** Whether a name stands in a text by itself, and not as a part of another word. */
function hasWord(text: string, name: string): boolean {
  const [words, word] = [text.toLowerCase(), name.toLowerCase()];
  for (let at = words.indexOf(word); at >= 0; at = words.indexOf(word, at + 1)) {
    const around = [words.slice(Math.max(0, at - 2), at), words.slice(at + word.length, at + word.length + 2)];
    if (!/[\p{L}\p{N}_]$/u.test(around[0] ?? '') && !/^[\p{L}\p{N}_]/u.test(around[1] ?? '')) return true;
  }
  return false;
}

/** A command behind our name, as in `Moirai: /status`: in rooms it cannot be given otherwise. */
export function withoutAddress(text: string, { userId, displayName }: Names): string {
  const name = [userId, displayName].find((each) => each !== null && startsWith(text, each));
  if (name == null) return text;
  const [, behind] = /^[:,]?\s{1,8}(\/[a-z][\s\S]*)$/i.exec(text.slice(name.length)) ?? [];
  return behind ?? text;
}

function startsWith(text: string, name: string): boolean {
  return text.slice(0, name.length).toLowerCase() === name.toLowerCase();
}
