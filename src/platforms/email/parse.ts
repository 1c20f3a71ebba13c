import PostalMime from 'postal-mime';
import { textOf } from '../fields.ts';
import type { Incoming, IncomingFile } from '../platform.ts';
import type { Head } from './head.ts';
import { htmlText } from './html-text.ts';
import { isForward, withoutQuotes, withoutSignature } from './quotes.ts';
import { referencesOf, rootOf } from './threads.ts';

/** A part as it was written: its own header, and its content as far as it was fetched. */
export interface RawPart {
  readonly header: Uint8Array;
  readonly content: Uint8Array;
}

/** What a mail says, besides its header. */
export interface Body {
  readonly plain: readonly RawPart[];
  readonly html: RawPart | null;
  readonly files: readonly IncomingFile[];
  /** Not all of the words were fetched. */
  readonly cut: boolean;
}

/** What the gateway takes as one message. */
const LONGEST = 30_000;
/** More is not read for what is quoted in it: that would keep everybody else waiting. */
const LONGEST_READ = 256 * 1024;
const NOTHING = '[An empty mail]';
const REST = '[The rest of the mail is left out.]';

/** A mail as a message to the agent. `known` says whether the conversation has seen what the mail answers. */
export async function readMail(
  head: Head,
  body: Body,
  { address, at, known }: { readonly address: string; readonly at: number; readonly known: boolean },
): Promise<Incoming> {
  const root = rootOf(head, address);
  const { text, cut } = await wordsOf(head, body, known);
  const { from, subject } = head;
  return {
    id: `email:${head.id}`,
    messageId: head.id,
    place: { type: 'thread', chat: root, ...(subject === null ? {} : { name: subject }) },
    from: { id: from?.address ?? null, name: from?.name ?? null, bot: false },
    text: withSubject(head, cut ? `${text}\n\n${REST}` : text, body.files.length > 0),
    files: body.files,
    repliesTo: null,
    addressed: !isCopy(head, address),
    edited: false,
    group: null,
    at,
    reply: {
      data: {
        to: from?.address ?? null,
        subject,
        id: head.messageId,
        references: referencesOf(head).join(' '),
      },
      until: null,
    },
  };
}

/** A copy of what was written to others: we are named, but not as the one it is for. */
function isCopy({ to, cc }: Head, address: string): boolean {
  return !to.includes(address) && cc.includes(address);
}

/** The first mail of a thread says with its subject what the others are about; a command stays a command. */
function withSubject({ subject, references, inReplyTo }: Head, text: string, hasFiles: boolean): string {
  const begins = references.length === 0 && inReplyTo.length === 0;
  if (begins && subject !== null && !text.startsWith('/'))
    return text === '' ? subject : `Subject: ${subject}\n\n${text}`;
  return text === '' && !hasFiles ? NOTHING : text;
}

async function wordsOf(head: Head, body: Body, known: boolean): Promise<{ text: string; cut: boolean }> {
  const plain = (await Promise.all(body.plain.map(decode))).map(({ text }) => text ?? '').join('\n\n');
  const written = plain.trim() === '' && body.html !== null ? (await decode(body.html)).html : undefined;
  const whole = (written === undefined ? plain : htmlText(written, 'kept')).slice(0, LONGEST_READ);
  const repeats = known && !isForward(head.subject, whole);
  const answer = repeats && written !== undefined ? htmlText(written, 'left out') : whole;
  const tidy = answer.replaceAll('\r\n', '\n').replaceAll('\u00a0', ' ');
  const text = withoutSignature(repeats ? withoutQuotes(tidy) : tidy).trim();
  return { text: textOf(text, LONGEST) ?? '', cut: body.cut || text.length > LONGEST || plain.length > LONGEST_READ };
}

/** The text of a part, whatever its encoding and charset are; nothing where it cannot be read. */
async function decode({ header, content }: RawPart): Promise<{ text?: string | undefined; html?: string | undefined }> {
  const mail = await PostalMime.parse(Buffer.concat([header, content])).catch(() => null);
  return { text: mail?.text, html: mail?.html };
}
