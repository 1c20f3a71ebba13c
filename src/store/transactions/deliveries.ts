import { MoiraiError } from '../../errors/moirai-error.ts';
import type { EventDraft } from '../../lifecycle/events.ts';
import {
  integer,
  json,
  nullableInteger,
  nullableJson,
  nullableText,
  type RowOf,
  selectValues,
  Table,
  text,
} from '../table.ts';
import { storableText } from '../text.ts';
import { type Query, query, type Tx, type TxContext } from '../transaction.ts';
import {
  AT_ONCE,
  advanceLane,
  afterSuccess,
  type Claimed,
  type ClaimedLane,
  type ClaimRequest,
  claimLanes,
  holdsClaim,
  type LaneClaim,
  oneSuspectAtATime,
  openLane,
  removeLane,
  type SettledLane,
  settleLane,
} from './queue.ts';
import { placeOf, record } from './record.ts';
import { type CommandContext, enter, enterSession, lockKey, lockSession } from './sessions.ts';

export const DELIVERY_COLUMNS = {
  id: text,
  sessionId: text,
  turnId: nullableText,
  /** Who can send it. */
  platform: text,
  /** Where to, in the platform's own words. */
  target: json<Readonly<Record<string, unknown>>>(),
  text: text,
  /** What it is beside its text, in the outbox's own words; nothing for most. */
  shape: nullableJson<Readonly<Record<string, unknown>>>(),
};

const DELIVERIES = new Table('deliveries', DELIVERY_COLUMNS);
const NEW_DELIVERIES = new Table('deliveries', {
  ...DELIVERY_COLUMNS,
  sessionKey: text,
  state: text,
  attempts: integer,
  createdAt: integer,
});

/** A reply on its way out, written before it is sent. */
export type Delivery = RowOf<typeof DELIVERIES>;

export type DeliveryToMake = Omit<Delivery, 'sessionId' | 'turnId' | 'shape'> & Partial<Pick<Delivery, 'shape'>>;

/**
 * The unsent replies to one conversation, oldest first. While the lane is `interrupted`, the receiver may have the first of
 * them already: a process died while it sent it.
 */
export type ReplyLane = ClaimedLane & {
  readonly deliveries: readonly Delivery[];
  /** So many processes died while they sent the first of them that it is not tried again. */
  readonly poisoned: boolean;
};

const SUSPECTS_EVERY_MS = 200;

/** The queue of what is sent through a platform. */
export function replyQueue(platform: string): string {
  return `replies/${platform}`;
}

/**
 * Puts replies into the outbox: their rows, and the lane of their conversation on each platform. One that is there
 * already, by its id, stays as it is. The caller holds the lock of the conversation.
 */
export function deliveryRows(
  ctx: TxContext,
  session: { readonly id: string; readonly key: string },
  turnId: string | null,
  deliveries: readonly DeliveryToMake[],
): Query[] {
  const common = { sessionId: session.id, sessionKey: session.key, turnId, state: 'queued', attempts: 0 };
  const rows = deliveries.map(({ shape = null, ...delivery }) => {
    const body = storableText(delivery.text, 'the reply');
    const row = { ...common, ...delivery, text: body, shape, createdAt: ctx.now };
    return NEW_DELIVERIES.insert(row, 'ON CONFLICT (id) DO NOTHING');
  });
  const platforms = new Set(deliveries.map(({ platform }) => platform));
  return [...rows, ...[...platforms].map((platform) => openLane(ctx, replyQueue(platform), session.key))];
}

/** Puts something into the outbox that is no turn's reply: a notice. With the same id again it changes nothing. */
export function* addDeliveries(
  ctx: TxContext,
  args: { context: CommandContext; sessionId: string; deliveries: readonly DeliveryToMake[] },
): Tx<void> {
  // Under the lock of its conversation: a row beside a session that is being removed would be sent for ever.
  const { loaded } = yield* enterSession(ctx, args.context, args.sessionId);
  const queries = deliveryRows(ctx, loaded.session, null, args.deliveries);
  if (queries.length > 0) yield queries;
}

export type ClaimReplies = Omit<ClaimRequest, 'queue'> & { readonly platform: string; readonly repliesPerLane: number };

/** Claims conversations with something to be sent through a platform, with their oldest unsent replies. */
export function* claimReplies(ctx: TxContext, args: ClaimReplies): Tx<Claimed<ReplyLane>> {
  yield* enter(ctx, args.context);
  const request = { ...args, queue: replyQueue(args.platform) };
  const claimed = yield* claimLanes(ctx, request, false);
  const taken = yield* oneSuspectAtATime(request, claimed.lanes);
  const answers = yield taken.map(({ key }) =>
    DELIVERIES.queryAs(SELECT_UNSENT, [args.platform, key, args.repliesPerLane]),
  );
  const lanes = taken.map((lane, i) => ({
    ...lane,
    poisoned: lane.deaths >= ctx.rules.stuckAfter,
    deliveries: DELIVERIES.rows(answers[i] ?? []),
  }));
  // A suspect that was left free is due: it is looked for again soon, but not at once.
  return { lanes, nextDueInMs: taken.length < claimed.lanes.length ? SUSPECTS_EVERY_MS : claimed.nextDueInMs };
}

const UNSENT_OF_LANE = "FROM deliveries WHERE platform = ? AND session_key = ? AND state = 'queued'";
const SELECT_UNSENT = `SELECT ${DELIVERIES.list} ${UNSENT_OF_LANE} ORDER BY no LIMIT ?`;

export type DeliveryOutcome =
  /** As the platform names the message, if it does. */
  | { readonly state: 'sent'; readonly messageId?: string }
  /**
   * To be tried again: the receiver could not be reached, or refused it for now, which counts. While it is `uncertain`, the
   * receiver may have it already.
   */
  | {
      readonly state: 'retry';
      readonly afterMs: number;
      readonly error: string;
      readonly counts: boolean;
      readonly uncertain?: boolean;
    }
  | { readonly state: 'failed'; readonly error: string }
  /** Its receiver may not be written to before they write again: it failed, and waits for that. */
  | { readonly state: 'held'; readonly error: string }
  /** It cannot be processed: passed over, and its receiver is told by the notice, if there is somebody to tell. */
  | { readonly state: 'set_aside'; readonly error: string; readonly notice: DeliveryToMake | null };

export interface SettleReply {
  readonly context: CommandContext;
  readonly platform: string;
  readonly key: string;
  readonly token: string;
  readonly deliveryId: string;
  readonly outcome: DeliveryOutcome;
  /** How often it was tried, as its lane counts, this time included. */
  readonly attempts: number;
  readonly waits: number;
  /** The claim goes on with the next reply of the lane. */
  readonly more: boolean;
  /** The turn whose growing reply it takes the place of. */
  readonly live?: string;
}

/**
 * Says how the first reply of a claimed lane fared. `sent` and `failed` are final and written to the log; then the answer
 * is how long after it was put into the outbox that was. Null for what is not final, or not ours to settle.
 */
export function* settleReply(ctx: TxContext, args: SettleReply): Tx<{ readonly ms: number } | null> {
  const scope = yield* enter(ctx, args.context);
  const { outcome, deliveryId } = args;
  const claim = { queue: replyQueue(args.platform), key: args.key, token: args.token };
  const delivery = yield* MADE.selectOne('WHERE id = ?', deliveryId);
  if (delivery === undefined) throw new MoiraiError('bad_input', `no delivery ${deliveryId}`);
  // The event about it joins the conversation's log, so its lock comes before the lane's.
  const loaded = yield* lockSession(ctx, delivery.sessionId);
  if (outcome.state === 'retry') {
    const { attempts, waits } = args;
    const dueAt = ctx.now + outcome.afterMs;
    const error = storableText(outcome.error, 'the error');
    const uncertain = outcome.uncertain === true;
    yield* settleLane(ctx, claim, { nextNo: ctx.now, dueAt, attempts, waits, error, done: false, uncertain });
    return null;
  }
  // Not ours any more: somebody else has the claim, and will say how it fared.
  if (!(yield* holdsClaim(ctx, claim))) return null;
  const error = outcome.state === 'sent' ? '' : storableText(outcome.error, 'the error');
  const attempts = args.attempts + args.waits;
  const settled = yield* query(
    `UPDATE deliveries SET state = ?, attempts = ?, sent_at = ?, message_id = ?, error = ?, held_at = ?
     WHERE id = ? AND state = 'queued' RETURNING id`,
    outcome.state === 'sent' ? 'sent' : 'failed',
    attempts,
    outcome.state === 'sent' ? ctx.now : null,
    outcome.state === 'sent' ? (outcome.messageId ?? null) : null,
    outcome.state === 'sent' ? null : error,
    outcome.state === 'held' ? ctx.now : null,
    deliveryId,
  );
  // What people watched growing has its last words now.
  if (args.live !== undefined) yield* query('DELETE FROM live_replies WHERE turn_id = ?', args.live);
  if (outcome.state === 'set_aside' && outcome.notice !== null && settled.length > 0) {
    yield deliveryRows(ctx, loaded.session, null, [outcome.notice]);
  }
  yield* leaveLane(ctx, args, claim);
  // The same settlement again, whose answer was lost: it is in the log already.
  if (settled.length === 0) return null;
  const fields = { delivery_id: deliveryId, attempts };
  const drafts: EventDraft[] =
    outcome.state === 'sent'
      ? [{ type: 'delivery:sent', fields: { ...fields, error: null } }]
      : [{ type: 'delivery:failed', fields: { ...fields, error } }];
  if (outcome.state === 'set_aside') {
    drafts.push({ type: 'work:set_aside', fields: { work: 'delivery', id: deliveryId, attempts, error } });
  }
  const place = placeOf(loaded.session, args.context.instanceId);
  yield* record(
    ctx,
    scope.subscribers,
    drafts.map((draft) => ({ id: `${deliveryId}:${draft.type.split(':')[1]}`, sessionSeq: null, place, draft })),
  );
  return { ms: ctx.now - delivery.createdAt };
}

const MADE = new Table('deliveries', { sessionId: text, createdAt: integer });

/** The claim goes on with the next reply, or the lane is given back. */
function* leaveLane(ctx: TxContext, args: SettleReply, claim: LaneClaim): Tx<void> {
  if (args.more) yield* advanceLane(claim, afterSuccess(ctx.now));
  else yield* giveBack(ctx, args, claim, afterSuccess(ctx.now));
}

/** A lane with nothing left to send goes. */
function* giveBack(
  ctx: TxContext,
  { platform, key }: { platform: string; key: string },
  claim: LaneClaim,
  after: SettledLane,
): Tx<void> {
  const [left] = yield* selectValues(text, `SELECT id ${UNSENT_OF_LANE} LIMIT 1`, platform, key);
  if (left !== undefined) {
    yield* settleLane(ctx, claim, after);
    ctx.effects.queues.add(claim.queue);
  }
  if (left === undefined && (yield* holdsClaim(ctx, claim))) yield [removeLane(claim.queue, claim.key)];
}

/** Gives a lane back as it is: nothing of it was tried. */
export function* releaseReplies(
  ctx: TxContext,
  args: { context: CommandContext; platform: string; key: string; token: string; attempts: number; waits: number },
): Tx<void> {
  yield* enter(ctx, args.context);
  yield* lockKey(ctx, args.key);
  const { platform, key, token, attempts, waits } = args;
  const claim = { queue: replyQueue(platform), key, token };
  yield* giveBack(ctx, args, claim, { nextNo: ctx.now, dueAt: AT_ONCE, attempts, waits, error: null, done: false });
}

/** How many replies are on their way, by platform. */
export function* countDeliveries(_ctx: TxContext, _args: Record<never, never>): Tx<Readonly<Record<string, number>>> {
  const rows = yield* QUEUED.selectAs(
    "SELECT platform, count(*) FROM deliveries WHERE state = 'queued' GROUP BY platform ORDER BY platform",
  );
  return Object.fromEntries(rows.map(({ platform, count }) => [platform, count]));
}

/** How long the oldest reply that is on its way has been, in milliseconds; null when none is. */
export function* oldestDelivery(ctx: TxContext, _args: Record<never, never>): Tx<number | null> {
  const [since = null] = yield* selectValues(
    nullableInteger,
    "SELECT min(created_at) FROM deliveries WHERE state = 'queued'",
  );
  return since === null ? null : Math.max(0, ctx.now - since);
}

const QUEUED = new Table('deliveries', { platform: text, count: integer });
