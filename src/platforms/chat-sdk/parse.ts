import { createHash } from 'node:crypto';
import { type Fields, fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import type { FileKind, Incoming, IncomingFile, Person, Place, Quote } from '../platform.ts';

/** What an adapter tells of its bot. */
export interface Self {
  readonly id: string | null;
  /** As people mention it. */
  readonly name: string | null;
}

const MOST_FILES = 20;
const LONGEST_ID = 512;
const LONGEST_REF = 8192;

/** A message as an adapter made it; null for what is none, and for our own. */
export function parseMessage(made: unknown, place: Place, self: Self): Incoming | null {
  const message = fieldsOf(made);
  const messageId = idOf(message?.id);
  const from = personOf(message?.author, self);
  if (message === null || messageId === null || from === null) return null;
  const metadata = fieldsOf(message.metadata);
  const edited = metadata?.edited === true;
  const said = textOf(message.text) ?? '';
  const files = filesOf(message.attachments);
  const { text, isNamed } = withoutOurName(said, self);
  if (text.trim() === '' && files.length === 0 && !isNamed) return null;
  const repliesTo = quoteOf(message.replyTo, self);
  return {
    // What was changed is another message for whoever answers it.
    id: edited ? `${baseId(place, messageId)}:${changedAt(metadata, said)}` : baseId(place, messageId),
    ...{ messageId, place, from, text, files, repliesTo, edited, group: null },
    addressed: place.type === 'dm' || message.isMention === true || isNamed || repliesTo?.own === true,
    at: timeOf(metadata?.dateSent) ?? 0,
  };
}

/** How a message is named on its platform, before it is changed. */
export function baseId({ chat }: Place, messageId: string): string {
  return `${chat}:${messageId}`;
}

/** A command that the platform itself knows as one: it comes beside messages. */
export function parseCommand(given: unknown, parsed: unknown, place: Place, self: Self): Incoming | null {
  const event = fieldsOf(given);
  const from = personOf(event?.user, self);
  const command = textOf(event?.command);
  if (event === null || from === null || !command?.startsWith('/')) return null;
  const message = parseMessage(parsed, place, self);
  const messageId = message?.messageId ?? digestOf(event.raw);
  return {
    ...{ id: baseId(place, messageId), messageId, place, from, files: [], edited: false, group: null, addressed: true },
    text: `${command} ${textOf(event.text) ?? ''}`.trim(),
    repliesTo: message?.repliesTo ?? null,
    at: message?.at ?? 0,
  };
}

/** Null for ourselves, and for what the platform itself says. */
export function personOf(given: unknown, self: Self): Person | null {
  const author = fieldsOf(given);
  if (author === null || author.isMe === true || author.isSystem === true) return null;
  const id = idOf(author.userId);
  if (id !== null && id === self.id) return null;
  return { id, name: nameOf(author.fullName) ?? nameOf(author.userName), bot: author.isBot === true };
}

export function idOf(value: unknown): string | null {
  const id = typeof value === 'number' ? integerOf(value)?.toString() : textOf(value, LONGEST_ID);
  return id ? id : null;
}

/** Something that has no name of its own is known by what it holds. */
export function digestOf(raw: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(raw) ?? '';
  } catch {
    text = String(raw); // It refers to itself, or is too deep.
  }
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** In front of a command the name would hide it. */
function withoutOurName(text: string, { name }: Self): { readonly text: string; readonly isNamed: boolean } {
  if (name === null) return { text, isNamed: false };
  const mention = `@${name.toLowerCase()}`;
  const trimmed = text.trimStart();
  if (endsAt(trimmed.toLowerCase(), mention, 0))
    return { text: trimmed.slice(mention.length).trimStart(), isNamed: true };
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(mention); at >= 0; at = lower.indexOf(mention, at + 1)) {
    if (endsAt(lower, mention, at)) return { text, isNamed: true };
  }
  return { text, isNamed: false };
}

/** A whole name: `@anna` is not said to `@ann`. */
function endsAt(text: string, mention: string, at: number): boolean {
  if (!text.startsWith(mention, at)) return false;
  return !/[\w-]/.test(text[at + mention.length] ?? '');
}

function quoteOf(given: unknown, self: Self): Quote | null {
  const quoted = fieldsOf(given);
  const messageId = idOf(quoted?.id);
  if (quoted === null || messageId === null) return null;
  const author = fieldsOf(quoted.author);
  const own = author?.isMe === true || (self.id !== null && author?.userId === self.id);
  return { messageId, text: textOf(quoted.text) ?? '', author: nameOf(author?.fullName), own };
}

const KINDS: Readonly<Record<string, FileKind>> = { image: 'image', audio: 'audio', video: 'video' };

function filesOf(given: unknown): IncomingFile[] {
  return listOf(given).slice(0, MOST_FILES).flatMap(fileOf);
}

function fileOf(given: unknown): IncomingFile[] {
  const attachment = fieldsOf(given);
  if (attachment === null) return [];
  const ref = JSON.stringify(keptOf(attachment));
  // Only what can be found again by what it tells of itself.
  if (ref === '{}' || ref.length > LONGEST_REF) return [];
  const name = nameOf(attachment.name)?.split(/[/\\]/).at(-1);
  return [
    {
      kind: KINDS[String(attachment.type)] ?? 'document',
      ...{ id: digestOf(ref), name: name ? name : null, mime: nameOf(attachment.mimeType) },
      ...{ bytes: integerOf(attachment.size), hint: null, ref },
    },
  ];
}

/** What the adapter needs to fetch it, also after a restart. */
function keptOf({ type, name, mimeType, size, url, fetchMetadata }: Fields): object {
  const metadata = Object.entries(fieldsOf(fetchMetadata) ?? {}).filter(([, value]) => typeof value === 'string');
  // What is longer than any of them may be is not written out to see that.
  if (metadata.some(([key, value]) => key.length + String(value).length > LONGEST_REF)) return {};
  const address = textOf(url);
  if (metadata.length === 0 && address === null) return {};
  const described = {
    type: nameOf(type) ?? undefined,
    name: nameOf(name) ?? undefined,
    mimeType: nameOf(mimeType) ?? undefined,
  };
  const found = {
    url: address ?? undefined,
    fetchMetadata: metadata.length === 0 ? undefined : Object.fromEntries(metadata),
  };
  return { ...described, size: integerOf(size) ?? undefined, ...found };
}

function changedAt(metadata: Fields | null, text: string): string {
  return String(timeOf(metadata?.editedAt) ?? digestOf(text));
}

function timeOf(value: unknown): number | null {
  const at = value instanceof Date ? value.getTime() : Number.NaN;
  return Number.isSafeInteger(at) ? at : null;
}
