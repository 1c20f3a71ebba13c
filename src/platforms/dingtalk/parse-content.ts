import { type Fields, fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import type { FileKind, IncomingFile } from '../platform.ts';

const MOST_PIECES = 200;
const MOST_TEXT = 32_768;
const MOST_CODE = 4096;

/** What a message holds, whichever kind it is. */
export interface Content {
  readonly text: string;
  readonly files: readonly IncomingFile[];
}

const FILE_KINDS: Readonly<Record<string, FileKind>> = {
  picture: 'image',
  audio: 'voice',
  video: 'video',
  file: 'document',
};

/** What a message of a kind holds; null for a kind that we do not know. `robot` is whose download codes are. */
export function contentOf(kind: string, content: unknown, robot: string): Content | null {
  if (typeof content === 'string') return { text: textOf(content) ?? '', files: [] };
  const fields = fieldsOf(content) ?? {};
  if (kind === 'text') return { text: textOf(fields.content ?? fields.text) ?? '', files: [] };
  if (kind === 'richText') return richContent(listOf(fields.richText), robot);
  if (!Object.hasOwn(FILE_KINDS, kind)) return null;
  const file = fileOf(FILE_KINDS[kind] ?? 'document', fields, robot);
  return { text: '', files: file === null ? [] : [file] };
}

/** Pieces of text and pictures, in the order in which they stand. */
function richContent(pieces: readonly unknown[], robot: string): Content {
  const words: string[] = [];
  const files: IncomingFile[] = [];
  for (const piece of pieces.slice(0, MOST_PIECES)) {
    const fields = fieldsOf(piece) ?? {};
    const kind = fields.type ?? fields.msgType;
    const file = kind === 'picture' ? fileOf('image', fields, robot) : null;
    if (file !== null) files.push(file);
    else words.push(textOf(fields.text ?? fields.content) ?? '');
  }
  return { text: words.join('').slice(0, MOST_TEXT).toWellFormed(), files };
}

function fileOf(kind: FileKind, fields: Fields, robot: string): IncomingFile | null {
  const code = textOf(fields.downloadCode, MOST_CODE) || textOf(fields.pictureDownloadCode, MOST_CODE);
  if (!code) return null;
  const name = nameOf(fields.fileName)?.split(/[/\\]/).at(-1);
  return {
    kind,
    id: nameOf(fields.fileId) ?? code,
    name: name ? name : null,
    mime: null,
    bytes: integerOf(fields.fileSize),
    // What DingTalk has understood of a voice message.
    hint: kind === 'voice' ? nameOf(fields.recognition) : null,
    ref: `${robot}:${code}`,
  };
}
