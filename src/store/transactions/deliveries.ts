import { MoiraiError } from '../../errors/moirai-error.ts';
import { storableText } from '../text.ts';
import {
  nullableText,
  numberOf,
  type Param,
  type Query,
  query,
  queryOne,
  type Row,
  type Tx,
  type TxContext,
  textOf,
} from '../transaction.ts';
import { placeOf, record } from './record.ts';
import { type CommandContext, enter, enterSession, lockSession } from './sessions.ts';

/** A reply on its way out, written before it is sent. */
export interface DeliveryToMake {
  readonly id: string;
  /** Who can send it. */
  readonly platform: string;
  /** Where to, in the platform's own words. */
  readonly target: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** What it is beside its text, in the outbox's own words; nothing for most. */
  readonly shape?: Readonly<Record<string, unknown>> | null;
}

export interface Delivery extends DeliveryToMake {
  readonly shape: Readonly<Record<string, unknown>> | null;
  readonly sessionId: string;
  readonly turnId: string | null;
  readonly attempts: number;
  /** A process died while sending it: the receiver may have it already. */
  readonly possibleDuplicate: boolean;
}

/** The outbox rows of a turn's replies. One that is there already, by its id, stays as it is. */
export function deliveryRows(
  ctx: TxContext,
  sessionId: string,
  turnId: string | null,
  deliveries: readonly DeliveryToMake[],
): Query[] {
  if (deliveries.length === 0) return [];
  const params: Param[] = [];
  for (const { id, platform, target, text, shape } of deliveries) {
    const body = storableText(text, 'the reply');
    const look = shape ? JSON.stringify(shape) : null;
    params.push(id, sessionId, turnId, platform, JSON.stringify(target), body, look, ctx.now, ctx.now);
  }
  ctx.effects.deliveries = true;
  const sql = `INSERT INTO deliveries
      (id, session_id, turn_id, platform, target, text, shape, state, attempts, possible_duplicate, due_at, created_at)
    VALUES ${deliveries.map(() => "(?, ?, ?, ?, ?, ?, ?, 'queued', 0, 0, ?, ?)").join(', ')}
    ON CONFLICT (id) DO NOTHING`;
  return [{ sql, params }];
}

/** Puts something into the outbox that is no turn's reply: a notice. With the same id again it changes nothing. */
export function* addDeliveries(
  ctx: TxContext,
  args: { context: CommandContext; sessionId: string; deliveries: readonly DeliveryToMake[] },
): Tx<void> {
  // Under the lock of its conversation: a row beside a session that is being removed would be sent for ever.
  yield* enterSession(ctx, args.context, args.sessionId);
  const queries = deliveryRows(ctx, args.sessionId, null, args.deliveries);
  if (queries.length > 0) yield queries;
}

/**
 * Takes due replies of these platforms for sending; whoever dies meanwhile is found by the reaper, and the reply is due
 * again. What comes behind a reply of its session that is being sent, or has to wait, is not taken yet.
 */
export function* claimDeliveries(
  ctx: TxContext,
  args: { context: CommandContext; platforms: readonly string[]; limit: number },
): Tx<Delivery[]> {
  const { listed } = ctx.dialect;
  yield* enter(ctx, args.context);
  const rows = yield* query(
    `UPDATE deliveries SET state = 'sending', due_at = NULL, claimed_by = ?, attempts = attempts + 1
     WHERE id IN (
       SELECT id FROM deliveries d WHERE due_at <= ? AND platform IN (${listed}) AND NOT EXISTS (
         SELECT 1 FROM deliveries e WHERE e.session_id = d.session_id AND (e.created_at, e.id) < (d.created_at, d.id)
           AND (e.state = 'sending' OR (e.state = 'queued' AND e.due_at > ?))
       ) ORDER BY due_at, id LIMIT ? ${ctx.dialect.skipLocked}
     ) RETURNING *`,
    args.context.instanceId,
    ctx.now,
    JSON.stringify(args.platforms),
    ctx.now,
    args.limit,
  );
  // Neither engine says in which order it returns what it updated; the parts of one reply must leave in theirs.
  return rows.sort(byAge).map(toDelivery);
}

function byAge(a: Row, b: Row): number {
  return numberOf(a, 'created_at') - numberOf(b, 'created_at') || (textOf(a, 'id') < textOf(b, 'id') ? -1 : 1);
}

export type DeliveryOutcome =
  /** As the platform names the message, if it does. */
  | { readonly state: 'sent'; readonly messageId?: string }
  | { readonly state: 'retry'; readonly afterMs: number; readonly error: string }
  | { readonly state: 'failed'; readonly error: string };

/**
 * Says how a claimed reply fared. `sent` and `failed` are final and written to the log: then this is how long after it was
 * put into the outbox. Null for what is not final, or not ours to settle.
 */
export function* settleDelivery(
  ctx: TxContext,
  args: { context: CommandContext; deliveryId: string; outcome: DeliveryOutcome },
): Tx<{ readonly ms: number } | null> {
  const scope = yield* enter(ctx, args.context);
  const row = yield* queryOne('SELECT * FROM deliveries WHERE id = ?', args.deliveryId);
  if (row === undefined) throw new MoiraiError('bad_input', `no delivery ${args.deliveryId}`);
  const loaded = yield* lockSession(ctx, textOf(row, 'session_id'));
  const { outcome } = args;
  const retry = outcome.state === 'retry';
  const updated = yield* query(
    `UPDATE deliveries SET state = ?, due_at = ?, sent_at = ?, message_id = ?, error = ?, claimed_by = NULL
     WHERE id = ? AND state = 'sending' AND claimed_by = ? RETURNING attempts`,
    retry ? 'queued' : outcome.state,
    retry ? ctx.now + outcome.afterMs : null,
    outcome.state === 'sent' ? ctx.now : null,
    outcome.state === 'sent' ? (outcome.messageId ?? null) : null,
    outcome.state === 'sent' ? null : storableText(outcome.error, 'the error'),
    args.deliveryId,
    args.context.instanceId,
  );
  // Not ours any more: the reaper gave it to somebody else, who will say how it fared.
  if (updated[0] === undefined || retry) return null;
  const fields = { delivery_id: args.deliveryId, attempts: numberOf(updated[0], 'attempts') };
  yield* record(ctx, scope.subscribers, [
    {
      id: `${args.deliveryId}:${outcome.state}`,
      sessionSeq: null,
      place: placeOf(loaded.session, args.context.instanceId),
      draft:
        outcome.state === 'sent'
          ? { type: 'delivery:sent', fields: { ...fields, error: null } }
          : { type: 'delivery:failed', fields: { ...fields, error: outcome.error } },
    },
  ]);
  return { ms: ctx.now - numberOf(row, 'created_at') };
}

/** How many replies are on their way, by platform. */
export function* countDeliveries(_ctx: TxContext, _args: Record<never, never>): Tx<Readonly<Record<string, number>>> {
  const rows = yield* query(
    `SELECT platform, count(*) AS n FROM deliveries WHERE state = 'queued' OR state = 'sending'
     GROUP BY platform ORDER BY platform`,
  );
  return Object.fromEntries(rows.map((row) => [textOf(row, 'platform'), numberOf(row, 'n')]));
}

/** Replies a dead instance was sending are due again, marked as possible duplicates. */
export function* releaseDeliveries(ctx: TxContext, instance: string): Tx<void> {
  yield* query(`${RELEASE} WHERE claimed_by = ? AND state = 'sending'`, ctx.now, instance);
}

/** The same for one reply that an instance claimed without learning of it. */
export function* releaseDelivery(ctx: TxContext, instance: string, deliveryId: string): Tx<void> {
  yield* query(`${RELEASE} WHERE id = ? AND claimed_by = ? AND state = 'sending'`, ctx.now, deliveryId, instance);
}

const RELEASE = "UPDATE deliveries SET state = 'queued', due_at = ?, claimed_by = NULL, possible_duplicate = 1";

function toDelivery(row: Row): Delivery {
  return {
    id: textOf(row, 'id'),
    sessionId: textOf(row, 'session_id'),
    turnId: nullableText(row, 'turn_id'),
    platform: textOf(row, 'platform'),
    target: JSON.parse(textOf(row, 'target')) as Record<string, unknown>,
    text: textOf(row, 'text'),
    attempts: numberOf(row, 'attempts'),
    shape: shapeOf(row),
    possibleDuplicate: row.possible_duplicate === 1,
  };
}

function shapeOf(row: Row): Record<string, unknown> | null {
  const shape = nullableText(row, 'shape');
  return shape === null ? null : (JSON.parse(shape) as Record<string, unknown>);
}
