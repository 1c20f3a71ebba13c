import { integer, selectValues, Table, text } from '../table.ts';
import { storableText } from '../text.ts';
import { query, type Tx, type TxContext } from '../transaction.ts';
import { DELIVERY_COLUMNS, deliveryRows } from './deliveries.ts';
import { placeOf, record } from './record.ts';
import { type CommandContext, enter, enterSession, lockSession } from './sessions.ts';

const HELD = new Table('deliveries', { no: integer, ...DELIVERY_COLUMNS });
const SENT = new Table('deliveries', { sessionId: text, attempts: integer });
/** What waits longer behind others than so many is not worth the messages it would take. */
const MOST_HELD = 20;

/** How many replies wait for the next message from a conversation. */
export function* countHeld(_ctx: TxContext, args: { platform: string; sessionKey: string }): Tx<number> {
  const sql = 'SELECT count(*) FROM deliveries WHERE platform = ? AND session_key = ? AND held_at IS NOT NULL';
  const [count = 0] = yield* selectValues(integer, sql, args.platform, args.sessionKey);
  return count;
}

/**
 * They have written again: what waited for that is on its way as replies of their own, the newest of them, in their order.
 * `reply` is the message that lets them through.
 */
export function* releaseHeld(
  ctx: TxContext,
  args: {
    context: CommandContext;
    sessionId: string;
    platform: string;
    reply: Readonly<Record<string, unknown>> | null;
  },
): Tx<number> {
  const { loaded } = yield* enterSession(ctx, args.context, args.sessionId);
  const { key } = loaded.session;
  const held = yield* HELD.select(
    'WHERE platform = ? AND session_key = ? AND held_at IS NOT NULL ORDER BY no DESC LIMIT ?',
    args.platform,
    key,
    MOST_HELD,
  );
  if (held.length === 0) return 0;
  const again = held.toReversed().map(({ id, platform, target, text, shape }) => {
    const { edit: _edit, stream: _stream, ...rest } = shape ?? {};
    return { id: `${id}:again`, platform, target, text, shape: { ...rest, late: true, reply: args.reply } };
  });
  yield* query(
    'UPDATE deliveries SET held_at = NULL WHERE platform = ? AND session_key = ? AND held_at IS NOT NULL',
    args.platform,
    key,
  );
  yield deliveryRows(ctx, loaded.session, null, again);
  return again.length;
}

/**
 * A reply that was taken did not arrive after all: it failed, and waits for the next message from there if it was too
 * late. False for one that is not known as sent.
 */
export function* failSent(
  ctx: TxContext,
  args: { context: CommandContext; deliveryId: string; error: string; held: boolean },
): Tx<boolean> {
  const scope = yield* enter(ctx, args.context);
  const delivery = yield* SENT.selectOne("WHERE id = ? AND state = 'sent'", args.deliveryId);
  if (delivery === undefined) return false;
  const { session } = yield* lockSession(ctx, delivery.sessionId);
  const error = storableText(args.error, 'the error');
  const failed = yield* query(
    "UPDATE deliveries SET state = 'failed', error = ?, held_at = ? WHERE id = ? AND state = 'sent' RETURNING id",
    error,
    args.held ? ctx.now : null,
    args.deliveryId,
  );
  if (failed.length === 0) return false;
  const fields = { delivery_id: args.deliveryId, attempts: delivery.attempts, error };
  yield* record(ctx, scope.subscribers, [
    {
      id: `${args.deliveryId}:failed`,
      sessionSeq: null,
      place: placeOf(session, args.context.instanceId),
      draft: { type: 'delivery:failed', fields },
    },
  ]);
  return true;
}
