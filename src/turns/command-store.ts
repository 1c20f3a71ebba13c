import { integer, nullableText, type RowOf, Table, text } from '../store/table.ts';
import { query, type Tx, type TxContext } from '../store/transaction.ts';

/** A slash command that was accepted under a name its sender gave it. */
const COMMANDS = new Table('commands', {
  ref: text,
  /** Of the call that accepted it: the same call again, whose answer was lost, accepts it again. */
  commandId: text,
  sessionKey: text,
  /** A hash of what was written. */
  body: text,
  acceptedAt: integer,
  /** What it said; null as long as it is not done, and where it set a turn going. */
  answer: nullableText,
  sessionId: nullableText,
  turnId: nullableText,
});

export type AcceptedCommand = RowOf<typeof COMMANDS>;

/** Accepts a command once within `ttlMs`: null when it is new, else what was accepted before. */
export function* acceptCommand(
  ctx: TxContext,
  args: Pick<AcceptedCommand, 'ref' | 'commandId' | 'sessionKey' | 'body'> & { ttlMs: number },
): Tx<AcceptedCommand | null> {
  const { ttlMs, ...facts } = args;
  const row = { ...facts, acceptedAt: ctx.now, answer: null, sessionId: null, turnId: null };
  yield [
    { sql: 'DELETE FROM commands WHERE accepted_at < ?', params: [ctx.now - ttlMs] },
    COMMANDS.insert(row, 'ON CONFLICT (ref) DO NOTHING'),
  ];
  const kept = yield* COMMANDS.selectOne('WHERE ref = ?', args.ref);
  return kept === undefined || kept.commandId === args.commandId ? null : kept;
}

export function* acceptedCommand(
  ctx: TxContext,
  { ref, ttlMs }: { ref: string; ttlMs: number },
): Tx<AcceptedCommand | null> {
  return (yield* COMMANDS.selectOne('WHERE ref = ? AND accepted_at >= ?', ref, ctx.now - ttlMs)) ?? null;
}

/** What came of an accepted command. */
export function* settleCommand(
  _ctx: TxContext,
  { ref, answer, sessionId, turnId }: Pick<AcceptedCommand, 'ref' | 'answer' | 'sessionId' | 'turnId'>,
): Tx<void> {
  yield* query(
    'UPDATE commands SET answer = ?, session_id = ?, turn_id = ? WHERE ref = ?',
    answer,
    sessionId,
    turnId,
    ref,
  );
}

/** It was not done, and may come again. */
export function* forgetCommand(_ctx: TxContext, args: { ref: string }): Tx<void> {
  yield* query('DELETE FROM commands WHERE ref = ?', args.ref);
}
