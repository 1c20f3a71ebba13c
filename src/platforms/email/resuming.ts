import type { ImapFlow, MailboxObject } from 'imapflow';
import type { PlatformRuntime } from '../platform.ts';
import { idsIn } from './head.ts';
import type { Position } from './position.ts';

/** Where to go on in a mailbox. */
export interface FoundPosition {
  /** What comes behind this mail is new. */
  readonly after: number;
  /** Up to here, what is known by its id was taken under another number. */
  readonly renumberedTo: number;
}

/** How far back what was taken is looked for once the numbers have changed. */
const MOST_LOOKED_AT = 500;

/**
 * Where to go on in a mailbox that was opened; null where nothing has changed since it was opened last. At the very first
 * start that is behind what is there: old mail is not answered.
 */
export async function findPosition(
  client: ImapFlow,
  mailbox: MailboxObject,
  position: Position,
  runtime: PlatformRuntime,
): Promise<FoundPosition | null> {
  const validity = String(mailbox.uidValidity);
  if (position.validity === validity) return null;
  const kept = await position.recall();
  if (kept === null) {
    const newest = newestBefore(mailbox);
    for (const { uid, id } of await idsOf(client, mailbox, 1)) if (uid <= newest && id !== null) position.note(id);
    await position.beginAt(validity, newest);
    return { after: newest, renumberedTo: 0 };
  }
  const after = kept.validity === validity ? kept.uid : await findAgain(client, mailbox, position, runtime);
  await position.beginAt(validity, after);
  return { after, renumberedTo: kept.validity === validity ? 0 : newestBefore(mailbox) };
}

/** The mails have other numbers. What was taken is known by its id, and the oldest of that is where to begin to look. */
async function findAgain(
  client: ImapFlow,
  mailbox: MailboxObject,
  position: Position,
  runtime: PlatformRuntime,
): Promise<number> {
  if (position.isFresh) return 0;
  const known = (await idsOf(client, mailbox, MOST_LOOKED_AT)).filter(({ id }) => id !== null && position.hasSeen(id));
  if (known.length > 0) return Math.min(...known.map(({ uid }) => uid)) - 1;
  runtime.warn('the mailbox was made anew and holds nothing that is known: only what comes from now on is answered');
  return newestBefore(mailbox);
}

function newestBefore({ uidNext }: MailboxObject): number {
  return Math.max(0, uidNext - 1);
}

/** The numbers and ids of the newest mails. */
async function idsOf(
  client: ImapFlow,
  { exists }: MailboxObject,
  most: number,
): Promise<{ readonly uid: number; readonly id: string | null }[]> {
  if (exists === 0) return [];
  const mails = await client.fetchAll(`${Math.max(1, exists - most + 1)}:*`, { uid: true, headers: ['message-id'] });
  return mails.map(({ uid, headers }) => ({ uid, id: idsIn(String(headers ?? ''))[0] ?? null }));
}
