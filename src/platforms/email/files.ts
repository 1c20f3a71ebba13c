import type { ImapFlow } from 'imapflow';
import { fieldsOf, integerOf, textOf } from '../fields.ts';
import { SendFailure } from '../platform.ts';

/** Where a file is: in which part of which mail. */
export interface FileRef {
  /** Which numbering of the mailbox `uid` belongs to. */
  readonly validity: string;
  readonly uid: number;
  readonly part: string;
  /** By which the mail is found when the numbers have changed. */
  readonly messageId: string | null;
}

export function writeRef(ref: FileRef): string {
  return JSON.stringify(ref);
}

/** The bytes of a file, from a connection that has no mailbox open yet. */
export async function readFile(client: ImapFlow, ref: string, maxBytes: number): Promise<Uint8Array> {
  const file = readRef(ref);
  const mailbox = await client.mailboxOpen('INBOX', { readOnly: true });
  const uid = String(mailbox.uidValidity) === file.validity ? file.uid : await findMail(client, file.messageId);
  const found =
    uid === null ? null : await client.download(String(uid), file.part, { uid: true, maxBytes: maxBytes + 1 });
  if (found?.content === undefined)
    throw new SendFailure('the mail with the file is not in the mailbox any more', null);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of found.content as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new SendFailure(`the file is larger than ${maxBytes} bytes`, null, 'too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The newest mail with an id, in the mailbox that is open. */
export async function findMail(client: ImapFlow, messageId: string | null): Promise<number | null> {
  if (messageId === null) return null;
  const found = await client.search({ header: { 'message-id': `<${messageId}>` } }, { uid: true });
  return (Array.isArray(found) ? found.at(-1) : null) ?? null;
}

function readRef(ref: string): FileRef {
  const fields = fieldsOf(JSON.parse(ref));
  const [validity, part] = [textOf(fields?.validity, 32), textOf(fields?.part, 100)];
  const uid = integerOf(fields?.uid);
  if (!validity || uid === null || !part || !/^\d+(?:\.\d+)*$/.test(part)) {
    throw new SendFailure('this names no file of a mail', null);
  }
  return { validity, uid, part, messageId: textOf(fields?.messageId, 300) };
}
