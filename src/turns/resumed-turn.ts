import type { Session, Turn } from '../lifecycle/session.ts';
import type { Store } from '../store/port.ts';
import { resumeNote } from './texts.ts';

/** Platforms where nobody reads along: an interrupted turn is finished, not talked about. */
const UNATTENDED: ReadonlySet<string> = new Set(['api', 'webhook', 'cron']);
/** Of the transcript, so many rows say whether the turn had begun. */
const NEWEST = 20;

/** What the agent is told about a turn that was interrupted and goes on. */
export async function noteForResumed(
  store: Store,
  session: Session,
  turn: Turn,
  newerWaiting: boolean,
): Promise<string> {
  const after = session.messageCount - NEWEST;
  const rows = await store.read('listMessages', { sessionId: session.id, after, limit: NEWEST });
  return resumeNote(session.resumeReason ?? 'crash', {
    begun: rows.some((row) => row.turnId === turn.id),
    newerWaiting,
    someoneThere: !UNATTENDED.has(session.platform),
  });
}
