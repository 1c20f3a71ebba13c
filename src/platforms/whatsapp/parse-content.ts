import { type Fields, fieldsOf, integerText, listOf, nameOf, textOf } from '../fields.ts';
import type { FileKind, IncomingFile } from '../platform.ts';

/** What somebody said. */
export interface Content {
  readonly text: string;
  readonly files: readonly IncomingFile[];
}

/** What is in a message of one of these types; null for what means nothing to us. */
export function contentOf(message: Fields): Content | null {
  const { type } = message;
  if (typeof type !== 'string') return null;
  if (type === 'text') return said(textOf(fieldsOf(message.text)?.body));
  if (type === 'button') return said(textOf(fieldsOf(message.button)?.text));
  const kind = Object.hasOwn(FILE_KINDS, type) ? FILE_KINDS[type] : undefined;
  if (kind !== undefined) return fileContent(kind, fieldsOf(message[type]));
  const describe = Object.hasOwn(DESCRIPTIONS, type) ? DESCRIPTIONS[type] : undefined;
  const words = describe?.(message) ?? null;
  return words === null ? null : said(`[${words.replace(/\s+/g, ' ').trim()}]`);
}

const FILE_KINDS: Readonly<Record<string, FileKind>> = {
  image: 'image',
  audio: 'audio',
  video: 'video',
  document: 'document',
  sticker: 'sticker',
};

const MOST_CONTACTS = 20;

const DESCRIPTIONS: Readonly<Record<string, (message: Fields) => string | null>> = {
  location: ({ location }) => locationOf(fieldsOf(location)),
  contacts: ({ contacts }) => {
    const names = listOf(contacts).slice(0, MOST_CONTACTS).flatMap(contactOf);
    return names.length === 0 ? null : `contact: ${names.join('; ')}`;
  },
  order: ({ order }) => {
    const items = listOf(fieldsOf(order)?.product_items).length;
    return joined(`order of ${items} ${items === 1 ? 'product' : 'products'}`, [nameOf(fieldsOf(order)?.text)]);
  },
  interactive: ({ interactive }) => {
    const reply = fieldsOf(fieldsOf(interactive)?.nfm_reply);
    return reply === null ? null : joined('form', [nameOf(reply.name), nameOf(reply.response_json)]);
  },
  // A poll, an event, a message that vanishes: WhatsApp tells that there was one.
  unsupported: ({ errors }) => joined('something that WhatsApp does not pass on', [reasonIn(errors)]),
};

function said(text: string | null): Content | null {
  return text === null || text === '' ? null : { text, files: [] };
}

function fileContent(kind: FileKind, file: Fields | null): Content | null {
  const ref = textOf(file?.id, 128);
  if (file === null || ref === null || !/^[\w-]+$/.test(ref)) return null;
  const incoming: IncomingFile = {
    kind: kind === 'audio' && file.voice === true ? 'voice' : kind,
    id: textOf(file.sha256, 128) || ref,
    name: baseName(file.filename),
    mime: mimeOf(file.mime_type),
    bytes: null,
    hint: kind === 'sticker' && file.animated === true ? 'animated' : null,
    ref,
  };
  return { text: textOf(file.caption) ?? '', files: [incoming] };
}

/** Without the parameters behind it, such as the codec. */
function mimeOf(value: unknown): string | null {
  return nameOf(nameOf(value)?.split(';')[0]);
}

/** No name from outside leads to another folder. */
function baseName(value: unknown): string | null {
  const name = nameOf(value)?.split(/[/\\]/).at(-1)?.trim();
  return name === undefined || name === '' || name === '.' || name === '..' ? null : name;
}

function locationOf(location: Fields | null): string | null {
  const { latitude, longitude } = location ?? {};
  const isNumber = Number.isFinite(latitude) && Number.isFinite(longitude);
  const coordinates = isNumber ? `${latitude as number}, ${longitude as number}` : null;
  const [name, address] = [nameOf(location?.name), nameOf(location?.address)];
  if (name === null && address === null) return coordinates === null ? null : `location: ${coordinates}`;
  return joined('place', [name, address, coordinates]);
}

function contactOf(value: unknown): string[] {
  const contact = fieldsOf(value);
  const name = nameOf(fieldsOf(contact?.name)?.formatted_name);
  const phones = listOf(contact?.phones).slice(0, MOST_CONTACTS);
  const numbers = phones.map((phone) => nameOf(fieldsOf(phone)?.phone));
  const known = [name, ...numbers].filter((part) => part !== null);
  return known.length === 0 ? [] : [known.join(', ')];
}

function reasonIn(errors: unknown): string | null {
  const error = fieldsOf(listOf(errors)[0]);
  return nameOf(fieldsOf(error?.error_data)?.details) ?? nameOf(error?.title) ?? integerText(error?.code);
}

function joined(what: string, parts: readonly (string | null)[]): string {
  const known = parts.filter((part) => part !== null);
  return known.length === 0 ? what : `${what}: ${known.join(', ')}`;
}
