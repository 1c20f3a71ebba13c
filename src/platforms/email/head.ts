import PostalMime, { type Address } from 'postal-mime';
import { nameOf, textOf } from '../fields.ts';
import { hashOf } from './own-ids.ts';

/** What the header of a mail says. Everything in it is written by whoever sent it, but for what our own server put in front. */
export interface Head {
  readonly from: Mailbox | null;
  readonly to: readonly string[];
  readonly cc: readonly string[];
  readonly subject: string | null;
  /** Without its brackets; made of other fields where the mail has none. */
  readonly id: string;
  /** Null where the mail has no Message-ID. */
  readonly messageId: string | null;
  readonly inReplyTo: readonly string[];
  readonly references: readonly string[];
  readonly sentAt: number | null;
  /** Every field by its name in lower case, as often as it is there, from the top. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
}

export interface Mailbox {
  /** In lower case. */
  readonly address: string;
  readonly name: string | null;
}

const MOST_IDS = 200;
/** Ours are the longest: they hold another. */
export const LONGEST_ID = 700;
const MOST_RECIPIENTS = 200;

/** Reads a header. Throws nothing: what cannot be read is as if it were not there. */
export async function readHead(header: Uint8Array): Promise<Head> {
  const mail = await PostalMime.parse(header).catch(() => null);
  const fields = new Map<string, string[]>();
  for (const { key, value } of mail?.headers ?? []) fields.set(key, [...(fields.get(key) ?? []), value]);
  const only = (name: string): string => (fields.get(name)?.length === 1 ? (fields.get(name)?.[0] ?? '') : '');
  const messageId = idsIn(only('message-id'))[0] ?? null;
  const sentAt = Date.parse(only('date'));
  return {
    from: fields.get('from')?.length === 1 ? mailboxOf(mail?.from) : null,
    to: addressesOf(mail?.to),
    cc: addressesOf(mail?.cc),
    subject: nameOf(mail?.subject),
    id: messageId ?? nameless(fields),
    messageId,
    inReplyTo: idsIn(only('in-reply-to')),
    references: idsIn(only('references')),
    sentAt: Number.isNaN(sentAt) ? null : sentAt,
    fields,
  };
}

/** Those of a header that lists ids of messages. */
export function idsIn(value: string): string[] {
  const ids = [...value.slice(0, MOST_IDS * LONGEST_ID).matchAll(/<([^<>\s]{1,700})>/g)].map(([, id = '']) => id);
  const sound = ids.map((id) => textOf(id) ?? '').filter((id) => /^[\x21-\x7e]+$/.test(id));
  // The first says which thread it is, the last what is answered.
  return sound.length <= MOST_IDS ? sound : [...sound.slice(0, 1), ...sound.slice(1 - MOST_IDS)];
}

function mailboxOf(address: Address | undefined): Mailbox | null {
  const written = textOf(address?.address, 320)?.trim().toLowerCase() ?? '';
  if (!/^[^\s@<>"(),:;[\]\\]{1,64}@[^\s@<>"(),:;[\]\\]{1,255}$/.test(written)) return null;
  return { address: written, name: nameOf(address?.name) };
}

function addressesOf(list: readonly Address[] | undefined): string[] {
  const flat = (list ?? [])
    .slice(0, MOST_RECIPIENTS)
    .flatMap((each) => each.group?.slice(0, MOST_RECIPIENTS) ?? [each]);
  return flat.flatMap((each) => mailboxOf(each)?.address ?? []);
}

/** What stays the same when the mail is delivered once more. */
function nameless(fields: ReadonlyMap<string, readonly string[]>): string {
  const lasting = ['from', 'to', 'cc', 'date', 'subject', 'content-type', 'in-reply-to', 'references'];
  return hashOf(JSON.stringify(lasting.map((name) => fields.get(name) ?? null)));
}
