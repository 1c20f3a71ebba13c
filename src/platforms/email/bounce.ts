import { textOf } from '../fields.ts';
import type { PlatformEvent } from '../platform.ts';
import { readHead } from './head.ts';
import { readOwnId } from './own-ids.ts';
import { rootOf } from './threads.ts';

/** What a mail server says that could not deliver something. */
export interface Report {
  /** Fields of the message and, behind an empty line each, of its recipients (RFC 3464). */
  readonly status: Uint8Array;
  /** The mail that it is about, or its header. */
  readonly original: Uint8Array;
}

const MOST_RECIPIENTS = 50;

/** The message of ours that did not arrive after all; null where the report is about something else. */
export async function failedMessage({ status, original }: Report, address: string): Promise<PlatformEvent | null> {
  const head = await readHead(original);
  const own = head.messageId === null ? null : readOwnId(head.messageId, address);
  if (own === null) return null;
  const failed = recipientsIn(Buffer.from(status).toString('utf8')).find(
    // The copy in our own mailbox is nobody's answer.
    ({ action, recipient }) => action === 'failed' && recipient !== address,
  );
  if (failed === undefined) return null;
  return {
    kind: 'message_failed',
    place: { type: 'thread', chat: rootOf(head, address) },
    key: own.key,
    reason: textOf(failed.why, 300) || 'the mail was returned',
    expired: false,
  };
}

interface Recipient {
  readonly recipient: string;
  readonly action: string;
  readonly why: string;
}

function recipientsIn(status: string): Recipient[] {
  const groups = status.replaceAll('\r', '').split('\n\n').slice(0, MOST_RECIPIENTS);
  return groups.map((group) => {
    const fields = new Map<string, string>();
    for (const line of group.replace(/\n[ \t]/g, ' ').split('\n')) {
      const at = line.indexOf(':');
      if (at > 0) fields.set(line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim());
    }
    const value = (name: string): string => fields.get(name) ?? '';
    const behindType = (text: string): string => text.slice(text.indexOf(';') + 1).trim();
    return {
      recipient: behindType(value('final-recipient')).toLowerCase(),
      action: value('action').toLowerCase(),
      why: [value('status'), behindType(value('diagnostic-code'))].filter((part) => part !== '').join(' '),
    };
  });
}
