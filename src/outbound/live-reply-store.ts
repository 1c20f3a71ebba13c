import { integer, json, nullableText, type RowOf, Table, text } from '../store/table.ts';
import { query, type Tx, type TxContext } from '../store/transaction.ts';
import { type CommandContext, enter } from '../store/transactions/sessions.ts';

const columns = {
  turnId: text,
  platform: text,
  /** Where it is shown, in the platform's own words. */
  target: json<Readonly<Record<string, unknown>>>(),
  /** How its platform finds it again, and in which way it grows. */
  handle: json<LiveHandle>(),
};

const LIVE = new Table('live_replies', columns);
const NEW_LIVE = new Table('live_replies', { ...columns, createdAt: integer });

/** A message that is changed while the reply is written, or a stream of the platform's own. */
export type LiveHandle = { readonly edit: string } | { readonly stream: string };

/** A reply that people watch growing: the process that goes on with its turn goes on with it as well. */
export type LiveReplyRow = RowOf<typeof LIVE>;

/** Remembers it; a turn has one. */
export function* keepLiveReply(
  ctx: TxContext,
  { context, ...row }: LiveReplyRow & { readonly context: CommandContext },
): Tx<void> {
  yield* enter(ctx, context);
  yield [
    NEW_LIVE.insert(
      { ...row, createdAt: ctx.now },
      'ON CONFLICT (turn_id) DO UPDATE SET target = excluded.target, handle = excluded.handle',
    ),
  ];
}

export function* forgetLiveReply(_ctx: TxContext, args: { turnId: string }): Tx<void> {
  yield* query('DELETE FROM live_replies WHERE turn_id = ?', args.turnId);
}

export function* liveReplyOf(_ctx: TxContext, args: { turnId: string }): Tx<LiveReplyRow | null> {
  return (yield* LIVE.selectOne('WHERE turn_id = ?', args.turnId)) ?? null;
}

const LEFT = new Table('live_replies', { ...columns, response: nullableText });

/**
 * Those whose turn is over and whose reply is not on its way: nobody will finish them. With what the turn has said, which
 * is null for one that was removed.
 */
export function* abandonedLiveReplies(
  _ctx: TxContext,
  args: { platform: string; limit: number },
): Tx<RowOf<typeof LEFT>[]> {
  return yield* LEFT.selectAs(
    `SELECT l.turn_id, l.platform, l.target, l.handle, t.response FROM live_replies l LEFT JOIN turns t ON t.id = l.turn_id
     WHERE l.platform = ? AND (t.id IS NULL OR t.state = 'over')
       AND NOT EXISTS (SELECT 1 FROM deliveries d
         WHERE d.session_id = t.session_id AND d.turn_id = l.turn_id AND d.state = 'queued')
     ORDER BY l.created_at LIMIT ?`,
    args.platform,
    args.limit,
  );
}
