import type { Command } from '../../lifecycle/commands.ts';
import { runningTurn, type SessionWithTurns } from '../../lifecycle/session.ts';
import { integer, selectValues, text } from '../table.ts';
import type { Tx, TxContext } from '../transaction.ts';
import { apply } from './apply.ts';
import { appendCommand, type MessageToAppend, messageRows } from './messages.ts';
import { placeOf, record } from './record.ts';
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
  const parked = command.name === 'suspend' ? runningTurn(loaded) : undefined;
  const after = yield* apply(ctx, scope, loaded, [...appendCommand(words, null), ...before, command], {
    // Whoever waits for the answer learns by this why there is none.
    ...(parked === undefined ? {} : { outcome: { ...NO_ANSWER, turnId: parked.id, error: 'session_suspended' } }),
    rows: () => messageRows(ctx, loaded.session, loaded.session.messageCount, words),
  });
  if (command.name === 'interrupt' && isLastCut(ctx, loaded)) yield* recordSetAside(ctx, scope, loaded);
  return after;
}

const NO_ANSWER = { response: null, model: null, usage: null };

/** The turn with which so many processes ended is not tried again. */
function* recordSetAside(ctx: TxContext, { subscribers, context }: WriteScope, loaded: SessionWithTurns): Tx<void> {
  const turn = runningTurn(loaded);
  if (turn === undefined) return;
  const attempts = loaded.session.cuts + 1;
  const fields = { work: 'turn', id: turn.id, attempts, error: `it was interrupted ${attempts} times` } as const;
  const place = placeOf(loaded.session, context.instanceId);
  yield* record(ctx, subscribers, [
    { id: turn.id, sessionSeq: null, place, draft: { type: 'work:set_aside', fields } },
  ]);
}

function isLastCut({ rules }: TxContext, { session }: SessionWithTurns): boolean {
  return session.state !== 'ended' && session.cuts + 1 >= rules.stuckAfter;
}

function endsTurns(ctx: TxContext, loaded: SessionWithTurns, { name }: Command): boolean {
  if (loaded.session.state === 'ended') return false;
  return name === 'suspend' || name === 'end' || (name === 'interrupt' && isLastCut(ctx, loaded));
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
