import { integer, nullableText, type RowOf, Table, text } from '../store/table.ts';
import { placeholders, query, type Tx, type TxContext } from '../store/transaction.ts';

/** What is asked of a turn by a process that does not run it. */
const REQUESTS = new Table('turn_requests', {
  id: text,
  turnId: text,
  /** `stop`, with the reason as its value; `steer`, with the turn to be taken into it. */
  kind: text,
  value: nullableText,
  at: integer,
});

export type TurnRequest = Omit<RowOf<typeof REQUESTS>, 'at'>;

/** Wakes those who run turns. */
export const CONTROL_QUEUE = 'control';

/** Asks something of a turn; its runner finds it. What was asked of turns that are over meanwhile is cleared away. */
export function* requestOfTurn(ctx: TxContext, args: TurnRequest): Tx<void> {
  yield [
    {
      sql: "DELETE FROM turn_requests WHERE turn_id NOT IN (SELECT id FROM turns WHERE state <> 'over')",
      params: [],
    },
    REQUESTS.insert({ ...args, at: ctx.now }, 'ON CONFLICT (id) DO NOTHING'),
  ];
  ctx.effects.queues.add(CONTROL_QUEUE);
}

/** What is asked of these turns, oldest first. */
export function* turnRequests(_ctx: TxContext, { turnIds }: { turnIds: readonly string[] }): Tx<TurnRequest[]> {
  if (turnIds.length === 0) return [];
  return yield* REQUESTS.select(`WHERE turn_id IN (${placeholders(turnIds.length)}) ORDER BY at, id`, ...turnIds);
}

export function* forgetTurnRequests(_ctx: TxContext, { ids }: { ids: readonly string[] }): Tx<void> {
  yield* query(`DELETE FROM turn_requests WHERE id IN (${placeholders(ids.length)})`, ...ids);
}
