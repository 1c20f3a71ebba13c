import type { Command } from '../../lifecycle/commands.ts';
import type { SessionWithTurns } from '../../lifecycle/session.ts';
import { integer, selectValues, text } from '../table.ts';
import type { Tx, TxContext } from '../transaction.ts';
import { apply } from './apply.ts';
import { appendCommand, type MessageToAppend, messageRows } from './messages.ts';
import type { WriteScope } from './sessions.ts';

/**
 * Applies a command that may end a turn that is under way without its run having a say. What the person wrote was shown
 * to them as said, and the run would have written it at its end: it is kept in the transcript here.
 */
export function* applyKeepingWords(
  ctx: TxContext,
  scope: WriteScope,
  loaded: SessionWithTurns,
  command: Command,
  before: readonly Command[] = [],
): Tx<SessionWithTurns> {
  const words = endsTurns(ctx, loaded, command) ? yield* unkeptWords(loaded) : [];
  return yield* apply(ctx, scope, loaded, [...appendCommand(words, null), ...before, command], {
    rows: () => messageRows(ctx, loaded.session, loaded.session.messageCount, words),
  });
}

function endsTurns({ rules }: TxContext, { session }: SessionWithTurns, { name }: Command): boolean {
  if (session.state === 'ended') return false;
  return name === 'suspend' || name === 'end' || (name === 'interrupt' && session.cuts + 1 >= rules.stuckAfter);
}

function* unkeptWords({ session, turns }: SessionWithTurns): Tx<MessageToAppend[]> {
  const words: MessageToAppend[] = [];
  for (const { id, state } of turns) {
    if (state === 'queued') continue;
    const [kept = 0] = yield* selectValues(
      integer,
      "SELECT count(*) FROM messages WHERE session_id = ? AND turn_id = ? AND role = 'user'",
      session.id,
      id,
    );
    if (kept > 0) continue;
    const [whole = ''] = yield* selectValues(text, 'SELECT text FROM turns WHERE id = ?', id);
    words.push({ role: 'user', text: whole, turnId: id });
  }
  return words;
}
