import type { Engine } from '../engine/engine.ts';
import { readOwnTranscript } from '../engine/transcript.ts';
import { hasCode } from '../errors/moirai-error.ts';
import type { Session, Turn } from '../lifecycle/session.ts';
import type { Store } from '../store/port.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import type { Message, MessageToAppend } from '../store/transactions/messages.ts';
import { notResumedText, type ResumeFacts, resumeNote } from './texts.ts';

/** Platforms where nobody reads along: an interrupted turn is finished, not talked about. */
const UNATTENDED: ReadonlySet<string> = new Set(['api', 'webhook', 'cron']);
/** Of the transcript, so many rows say whether the turn had begun. */
const NEWEST = 20;
const BATCH = 200;

/** What the agent is told about a turn that was interrupted and goes on. */
export async function noteForResumed(
  store: Store,
  session: Session,
  turn: Turn,
  newerWaiting: boolean,
): Promise<string> {
  return resumeNote(session.resumeReason ?? 'crash', {
    begun: begunIn(await newestRows(store, session), turn),
    newerWaiting,
    someoneThere: !UNATTENDED.has(session.platform),
  });
}

function newestRows(store: Store, { id: sessionId, messageCount }: Session): Promise<Message[]> {
  return Array.fromAsync(readOwnTranscript(store, sessionId, messageCount - NEWEST));
}

/** A step is finished when its tool has answered; words that were shown and not finished are marked as partial. */
function begunIn(rows: readonly Message[], turn: Turn): ResumeFacts['begun'] {
  const own = rows.filter(({ turnId, role }) => turnId === turn.id && role !== 'user' && role !== 'note');
  if (own.some(({ data }) => data?.partial !== true)) return 'steps';
  return own.length > 0 ? 'words' : 'nothing';
}

/** What is sent to the conversation of a session, as rows of the outbox. */
export type Notice = (session: Session, text: string, id: string) => readonly DeliveryToMake[];

/** Ends turns that were cut longer ago than the resume window, and tells their people, in one transaction each. */
export async function giveUpStale(engine: Engine, notice: Notice, sessionId: string | null): Promise<number> {
  const stale = await engine.store.read('staleTurns', { sessionId, limit: BATCH });
  for (const one of stale) {
    try {
      await giveUp(engine, notice, one.sessionId, one.id);
    } catch (thrown) {
      // Another process began it, or its session has ended meanwhile.
      if (!hasCode(thrown, 'turn_not_found', 'illegal_move', 'session_ended', 'session_not_found')) throw thrown;
    }
  }
  return stale.length;
}

/** All of them, in batches with other work in between. */
export async function giveUpAllStale(engine: Engine, notice: Notice): Promise<void> {
  for (let more = true; more; ) more = (await giveUpStale(engine, notice, null)) === BATCH;
}

async function giveUp(engine: Engine, notice: Notice, sessionId: string, turnId: string): Promise<void> {
  const { store } = engine;
  const session = await store.read('getSession', { sessionId });
  const said = await store.read('turnText', { turnId });
  if (session === null || said === null) return;
  const rows = await newestRows(store, session);
  const isKept = rows.some((row) => row.turnId === turnId && row.role === 'user');
  const text = notResumedText(said);
  const messages: MessageToAppend[] = [
    ...(isKept ? [] : [{ role: 'user', text: said, turnId }]),
    { role: 'note', text, turnId: null },
  ];
  await engine.giveUp(sessionId, turnId, text, { messages, deliveries: notice(session, text, `${turnId}:given-up`) });
}
