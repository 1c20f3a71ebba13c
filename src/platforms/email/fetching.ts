import type { FetchMessageObject, ImapFlow } from 'imapflow';
import type { IncomingFile } from '../platform.ts';
import { isUnreadable } from './failures.ts';
import { writeRef } from './files.ts';
import { type Head, readHead } from './head.ts';
import type { Body, RawPart } from './parse.ts';
import { type Parts, readParts } from './structure.ts';

/** A mail as its server has it, without its files. */
export interface FetchedMail {
  readonly uid: number;
  readonly head: Head;
  readonly parts: Parts;
  /** Epoch milliseconds. */
  readonly at: number;
}

const HEADER_BYTES = 64 * 1024;
const PART_BYTES = 256 * 1024;
/** Some programs put pictures between the words. */
const MOST_WORDS = 4;

/** The header and the outline of a mail; null when it is not there any more. */
export async function fetchMail(client: ImapFlow, uid: number): Promise<FetchedMail | null> {
  const bodyParts = [{ key: 'header', maxLength: HEADER_BYTES }];
  const query = { uid: true, internalDate: true, bodyParts };
  const mail = await client
    .fetchOne(String(uid), { ...query, bodyStructure: true }, { uid: true })
    .catch((thrown: unknown) => {
      // An outline that cannot be read must not keep everybody out: then only the header counts.
      if (!isUnreadable(thrown) || !client.usable) throw thrown;
      return client.fetchOne(String(uid), query, { uid: true });
    });
  if (!mail) return null;
  if (!mail.headers) throw Object.assign(new Error('the mail came without its header'), { code: 'InvalidResponse' });
  const head = await readHead(mail.headers);
  const at = mail.internalDate instanceof Date ? mail.internalDate.getTime() : 0;
  return { uid, head, parts: readParts(mail.bodyStructure), at };
}

/** The words of a mail, as far as they are no longer than anybody writes, and the names of its files; null when it is gone. */
export async function fetchBody(
  client: ImapFlow,
  { uid, head, parts }: FetchedMail,
  validity: string,
): Promise<Body | null> {
  const plain = parts.plain.slice(0, MOST_WORDS);
  const html = parts.html.slice(0, 1);
  const raw = await fetchParts(client, uid, [...plain, ...html]);
  if (raw === null) return null;
  const rawOf = (part: string): RawPart[] => {
    const found = raw.get(part);
    // A mail of one part has no header of the part beside its own.
    if (found === undefined || !parts.single) return found === undefined ? [] : [found];
    return [{ ...found, header: headerOf(head) }];
  };
  const files = parts.files.map(({ part, ...file }): IncomingFile => {
    const ref = writeRef({ validity, uid, part, messageId: head.messageId });
    return { ...file, id: `${head.id}/${part}`, hint: null, ref };
  });
  const [body = null] = html.flatMap(rawOf);
  const pieces = [...raw.values()];
  return {
    plain: plain.flatMap(rawOf),
    html: body,
    files,
    cut: pieces.some(({ content }) => content.length >= PART_BYTES),
  };
}

/** Parts of a mail with their headers, each as far as it is no longer than it should be; null when the mail is gone. */
export async function fetchParts(
  client: ImapFlow,
  uid: number,
  parts: readonly string[],
): Promise<Map<string, RawPart> | null> {
  const found = new Map<string, RawPart>();
  if (parts.length === 0) return found;
  const bodyParts = parts.flatMap((part) => [
    { key: `${part}.mime`, maxLength: HEADER_BYTES },
    { key: part, maxLength: PART_BYTES },
  ]);
  const mail = await client.fetchOne(String(uid), { uid: true, bodyParts }, { uid: true });
  if (!mail) return null;
  for (const part of parts) {
    found.set(part, { header: partOf(mail, `${part}.mime`), content: partOf(mail, part) });
  }
  return found;
}

function partOf({ bodyParts }: FetchMessageObject, key: string): Uint8Array {
  return bodyParts?.get(key) ?? new Uint8Array();
}

/** The fields that say how the content of a part is written. */
function headerOf({ fields }: Head): Uint8Array {
  const lines = ['content-type', 'content-transfer-encoding'].flatMap((name) => {
    const value = fields.get(name)?.[0];
    return value === undefined ? [] : [`${name}: ${value.replace(/[\r\n]/g, ' ')}`];
  });
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
}
