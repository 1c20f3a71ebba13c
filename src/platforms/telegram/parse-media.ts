import { type Fields, fieldsOf, integerOf, integerText, listOf, nameOf, textOf } from '../fields.ts';
import type { FileKind, IncomingFile } from '../platform.ts';

const KINDS: readonly (readonly [field: string, kind: FileKind])[] = [
  ['voice', 'voice'],
  ['audio', 'audio'],
  ['video', 'video'],
  ['video_note', 'video'],
  ['sticker', 'sticker'],
  // An animation comes a second time as a document, so it is looked for before.
  ['animation', 'video'],
  ['document', 'document'],
];

const MOST_SIZES = 32;

/** The file of a message; there is one at most. */
export function parseFiles(message: Fields): readonly IncomingFile[] {
  const photo = fileOf('image', largest(message.photo));
  if (photo !== null) return [photo];
  for (const [field, kind] of KINDS) {
    const file = fileOf(kind, fieldsOf(message[field]));
    if (file !== null) return [file];
  }
  return [];
}

/** What is in a message that is neither text nor file, as one line in brackets; null for a service message. */
export function describeContent(message: Fields): string | null {
  for (const [field, describe] of DESCRIPTIONS) {
    const content = fieldsOf(message[field]);
    const words = content === null ? null : describe(content);
    if (words !== null) return `[${words.replace(/\s+/g, ' ').trim()}]`;
  }
  return null;
}

const DESCRIPTIONS: readonly (readonly [field: string, describe: (content: Fields) => string | null])[] = [
  ['venue', ({ title, address, location }) => joined('place', [nameOf(title), nameOf(address), coordinates(location)])],
  ['location', (location) => joined('location', [coordinates(location)])],
  ['contact', (contact) => joined('contact', [fullName(contact), nameOf(contact.phone_number)])],
  ['poll', ({ question, options }) => joined('poll', [nameOf(question), optionsOf(options)])],
  ['dice', ({ emoji, value }) => joined('dice', [nameOf(emoji), integerText(value)])],
  ['checklist', ({ title, tasks }) => joined('checklist', [nameOf(title), optionsOf(tasks)])],
  ['story', () => 'story'],
  ['paid_media', () => 'paid media'],
  ['game', ({ title }) => joined('game', [nameOf(title)])],
];

/** The name people see of a user or contact. */
export function fullName({ first_name, last_name }: Fields): string | null {
  return nameOf([nameOf(first_name), nameOf(last_name)].filter((part) => part !== null).join(' '));
}

function fileOf(kind: FileKind, file: Fields | null): IncomingFile | null {
  const fileId = textOf(file?.file_id, 1024);
  if (file === null || !fileId) return null;
  const bytes = integerOf(file.file_size);
  return {
    kind,
    id: textOf(file.file_unique_id, 256) || fileId,
    name: baseName(file.file_name),
    mime: mimeOf(kind, file),
    bytes: bytes !== null && bytes >= 0 ? bytes : null,
    hint: kind === 'sticker' ? stickerHint(file) : null,
    ref: fileId,
  };
}

function largest(photo: unknown): Fields | null {
  const area = (size: Fields) => (integerOf(size.width) ?? 0) * (integerOf(size.height) ?? 0);
  let best: Fields | null = null;
  for (const value of listOf(photo).slice(0, MOST_SIZES)) {
    const size = fieldsOf(value);
    if (size !== null && textOf(size.file_id) && (best === null || area(size) >= area(best))) best = size;
  }
  return best;
}

/** No name from outside leads to another folder. */
function baseName(value: unknown): string | null {
  const name = nameOf(value)?.split(/[/\\]/).at(-1)?.trim();
  return name === undefined || name === '' || name === '.' || name === '..' ? null : name;
}

function mimeOf(kind: FileKind, file: Fields): string | null {
  if (kind === 'image') return 'image/jpeg';
  if (kind !== 'sticker') return nameOf(file.mime_type);
  if (file.is_animated === true) return 'application/x-tgsticker';
  return file.is_video === true ? 'video/webm' : 'image/webp';
}

function stickerHint({ emoji, set_name }: Fields): string | null {
  const [sign, set] = [nameOf(emoji), nameOf(set_name)];
  return nameOf([sign, set === null ? null : `from ${set}`].filter((part) => part !== null).join(' '));
}

function coordinates(value: unknown): string | null {
  const { latitude, longitude } = fieldsOf(value) ?? {};
  const isNumber = Number.isFinite(latitude) && Number.isFinite(longitude);
  return isNumber ? `${latitude as number}, ${longitude as number}` : null;
}

function optionsOf(value: unknown): string | null {
  const texts = listOf(value)
    .slice(0, 100)
    .map((option) => nameOf(fieldsOf(option)?.text));
  return nameOf(texts.filter((text) => text !== null).join(' / '));
}

function joined(what: string, parts: readonly (string | null)[]): string | null {
  const known = parts.filter((part) => part !== null);
  return known.length === 0 ? what : `${what}: ${known.join(', ')}`;
}
