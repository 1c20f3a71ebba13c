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
const MOST_NOTED = 20;

/**
 * Where to go on in a mailbox that was opened; null where nothing has changed since it was opened last. At the very first
 * start that is behind what came before: old mail is not answered.
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
    const mails = await newestOf(client, mailbox);
    // Servers tell the time of a mail in whole seconds.
    const first = mails.find(({ at }) => at >= Math.floor(position.since / 1000) * 1000);
    const after = Math.min(newestBefore(mailbox), (first?.uid ?? Number.POSITIVE_INFINITY) - 1);
    for (const { uid, id } of mails.slice(-MOST_NOTED)) if (uid <= after && id !== null) position.noteLeftOut(id);
    await position.beginAt(validity, after);
    return { after, renumberedTo: 0 };
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
  const known = (await newestOf(client, mailbox)).filter(({ id }) => id !== null && position.hasSeen(id));
  if (known.length > 0) return Math.min(...known.map(({ uid }) => uid)) - 1;
  runtime.warn('the mailbox was made anew and holds nothing that is known: only what comes from now on is answered');
  return newestBefore(mailbox);
}

function newestBefore({ uidNext }: MailboxObject): number {
  return Math.max(0, uidNext - 1);
}

/** The newest mails, oldest first. */
async function newestOf(
  client: ImapFlow,
  { exists }: MailboxObject,
): Promise<{ readonly uid: number; readonly id: string | null; readonly at: number }[]> {
  if (exists === 0) return [];
  const range = `${Math.max(1, exists - MOST_LOOKED_AT + 1)}:*`;
  const mails = await client.fetchAll(range, { uid: true, internalDate: true, headers: ['message-id'] });
  return mails.map(({ uid, headers, internalDate }) => ({
    uid,
    id: idsIn(String(headers ?? ''))[0] ?? null,
    at: internalDate instanceof Date ? internalDate.getTime() : 0,
  }));
}
