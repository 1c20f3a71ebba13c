import type { FileKind, Outgoing, OutgoingFile } from '../platform.ts';
import { renderMessage } from './render.ts';

/** What is shown by clients that know no changed messages; the whole text would be there twice. */
const MOST_FALLBACK = 1000;

/** The content of an event, as it is sent. */
export type EventContent = Readonly<Record<string, unknown>>;

/** Where a message stands among others. */
export interface Standing {
  readonly thread: string | undefined;
  readonly message: Pick<Outgoing, 'replyTo' | 'reply'>;
  /** Who wrote what it answers, where that is known: they are told of it. */
  readonly answered: string | null;
}

export function textContent(markdown: string, standing: Standing): EventContent {
  return { ...wordsOf(markdown), ...mentionsOf(standing.answered), ...relationOf(standing) };
}

/** A message that takes the place of another one of ours. */
export function changeContent(markdown: string, messageId: string): EventContent {
  const content = { ...wordsOf(markdown), ...mentionsOf(null) };
  const fallback = content.body.slice(0, MOST_FALLBACK).toWellFormed();
  return {
    msgtype: content.msgtype,
    body: `* ${fallback}`,
    'm.new_content': content,
    'm.mentions': {},
    'm.relates_to': { rel_type: 'm.replace', event_id: messageId },
  };
}

const FILE_TYPES: Readonly<Record<FileKind, string>> = {
  image: 'm.image',
  sticker: 'm.image',
  audio: 'm.audio',
  voice: 'm.audio',
  video: 'm.video',
  document: 'm.file',
};

export function fileContent(file: OutgoingFile, url: string, standing: Standing): EventContent {
  const name = fileName(file);
  return {
    msgtype: FILE_TYPES[file.kind],
    body: name,
    filename: name,
    url,
    info: { mimetype: mimeOf(file), size: file.bytes.length },
    ...(file.kind === 'voice' ? { 'org.matrix.msc3245.voice': {} } : {}),
    ...mentionsOf(null),
    ...relationOf(standing),
  };
}

export function mimeOf({ mime }: OutgoingFile): string {
  return mime !== null && /^[\w.+-]+\/[\w.+-]+$/.test(mime) ? mime : 'application/octet-stream';
}

/** Without its folder, which stays private. */
export function fileName({ name }: Pick<OutgoingFile, 'name'>): string {
  return name.split(/[/\\]/).at(-1)?.toWellFormed().replaceAll('\0', '') || 'file';
}

/** What the words of a text weigh in an event. */
export function measureText(markdown: string): number {
  return Buffer.byteLength(JSON.stringify(wordsOf(markdown)));
}

function wordsOf(markdown: string): { readonly msgtype: 'm.text'; readonly body: string } {
  const { body, formatted } = renderMessage(markdown);
  const html = formatted === null ? {} : { format: 'org.matrix.custom.html', formatted_body: formatted };
  return { msgtype: 'm.text', body, ...html };
}

/** Says who is meant, and so that nobody else is: without it clients look for names in the words. */
function mentionsOf(userId: string | null) {
  return { 'm.mentions': userId === null ? {} : { user_ids: [userId] } };
}

function relationOf({ thread, message: { replyTo, reply } }: Standing) {
  if (thread === undefined) {
    return replyTo === undefined ? {} : { 'm.relates_to': { 'm.in_reply_to': { event_id: replyTo } } };
  }
  // Clients that know no threads show it as an answer to the message before it.
  const answered = replyTo ?? reply?.messageId ?? thread;
  return {
    'm.relates_to': {
      rel_type: 'm.thread',
      event_id: thread,
      is_falling_back: replyTo === undefined,
      'm.in_reply_to': { event_id: answered },
    },
  };
}
