import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageToAppend } from '../store/transactions/messages.ts';
import type { TurnContext } from './runner.ts';

const LONGEST_MS = 2_000;

/**
 * Keeps what an aborted turn has left. The turn is over either way, and its owner waits: what cannot be kept now, because
 * the session was taken over or the store is gone, is lost to the transcript, and the turn's own row still has what the
 * person wrote.
 */
export async function keepUnsavedRows(context: TurnContext, rows: readonly MessageToAppend[]): Promise<void> {
  if (rows.length === 0) return;
  const kept = context.keep(rows).catch(() => undefined);
  await Promise.race([kept, sleep(LONGEST_MS, undefined, { ref: false })]);
}
