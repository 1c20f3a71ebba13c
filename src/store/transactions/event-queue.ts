import type { MoiraiEvent } from '../../lifecycle/events.ts';
import { integer, isUnreadable, json, selectedAs, Table } from '../table.ts';
import { storableText } from '../text.ts';
import { type Query, query, type Row, type Tx, type TxContext } from '../transaction.ts';
import {
  afterSuccess,
  type Claimed,
  type ClaimedLane,
  type ClaimRequest,
  claimLanes,
  removeLane,
  type SettledLane,
  settleLane,
} from './queue.ts';
import { listens, queueOf, record, type Subscriber } from './record.ts';
import { type CommandContext, enter, lockKey } from './sessions.ts';

export interface LaneEvent {
  readonly no: number;
  readonly event: MoiraiEvent;
  /** It was dead and is being replayed. */
  readonly replay: boolean;
}

/** A conversation's undelivered events for one subscriber, in order. */
export type EventLane = ClaimedLane & {
  readonly subscriber: string;
  readonly events: readonly LaneEvent[];
  /** Numbers of events that nobody can read: passed over. */
  readonly unreadable: readonly number[];
  /** The last number this claim covers, matching or not: acknowledging it moves the lane past it. */
  readonly upTo: number;
};

export type ClaimEvents = ClaimRequest & { readonly subscriber: string; readonly eventsPerLane: number };

/** Claims due lanes of a subscriber, with their next events. */
export function* claimEvents(ctx: TxContext, args: ClaimEvents): Tx<Claimed<EventLane>> {
  const scope = yield* enter(ctx, args.context);
  const subscriber = scope.subscribers.find(({ name }) => name === args.subscriber);
  if (subscriber === undefined) return { lanes: [], nextDueInMs: null };
  const claimed = yield* claimLanes(ctx, args, false);
  const answers = yield claimed.lanes.flatMap((lane) => laneQueries(args, lane));
  const lanes = claimed.lanes.map((lane, i) => {
    return readLane(args.eventsPerLane, subscriber, lane, answers[2 * i] ?? [], answers[2 * i + 1] ?? []);
  });
  return { lanes, nextDueInMs: claimed.nextDueInMs };
}

const EVENTS = new Table('events', { no: integer, event: selectedAs('body', json<MoiraiEvent>()) });
const REPLAYS = `SELECT e.no, e.body FROM dead_letters d JOIN events e ON e.no = d.event_no
  WHERE d.subscriber = ? AND d.session_key = ? AND d.replay = 1 ORDER BY e.no LIMIT ?`;
const FRESH = 'WHERE session_key = ? AND no >= ? AND no <= ? ORDER BY no LIMIT ?';

/** The dead letters of a lane that are to be replayed, and its fresh events. */
function laneQueries({ subscriber, eventsPerLane }: ClaimEvents, { key, nextNo, lastNo }: ClaimedLane): Query[] {
  return [
    EVENTS.queryAs(REPLAYS, [subscriber, key, eventsPerLane]),
    EVENTS.query(FRESH, key, nextNo, lastNo, eventsPerLane),
  ];
}

function readLane(
  eventsPerLane: number,
  subscriber: Subscriber,
  lane: ClaimedLane,
  replays: readonly Row[],
  fresh: readonly Row[],
): EventLane {
  const taken = EVENTS.rows(fresh).slice(0, eventsPerLane - replays.length);
  const events = [
    ...EVENTS.rows(replays)
      .filter(({ event }) => !isUnreadable(event))
      .map((item) => ({ ...item, replay: true })),
    ...taken
      .filter(({ event }) => !isUnreadable(event) && wants(subscriber, event))
      .map((item) => ({ ...item, replay: false })),
  ];
  const unreadable = taken.filter(({ event }) => isUnreadable(event)).map(({ no }) => no);
  return { ...lane, subscriber: subscriber.name, events, unreadable, upTo: taken.at(-1)?.no ?? lane.nextNo - 1 };
}

function wants(subscriber: Subscriber, event: MoiraiEvent): boolean {
  if (event.type === 'hook:failed' && event.subscriber === subscriber.name) return false;
  return listens(subscriber, event.type);
}

/** What of a claim was delivered: fresh events up to a number, and dead letters that were replayed. */
export interface Delivered {
  readonly upTo: number;
  readonly replayed: readonly number[];
}

export interface SettleEvents {
  readonly context: CommandContext;
  readonly subscriber: string;
  readonly key: string;
  readonly token: string;
  readonly delivered: Delivered;
}

/** Moves a lane past what was delivered and gives it back. False when the claim was no longer ours. */
export function* ackEvents(ctx: TxContext, args: SettleEvents): Tx<boolean> {
  yield* enter(ctx, args.context);
  return yield* advance(ctx, args, afterSuccess(args.delivered.upTo + 1));
}

function* advance(ctx: TxContext, args: SettleEvents, after: SettledLane): Tx<boolean> {
  const { subscriber, key, token } = args;
  const queue = queueOf(subscriber);
  const settled = yield* settleLane(ctx, { queue, key, token }, after);
  if (settled === undefined) return false;
  if (args.delivered.replayed.length > 0) yield args.delivered.replayed.map((no) => forgetDeadLetter(subscriber, no));
  if (settled.lastNo >= after.nextNo) return true;
  const waiting = yield* query(
    'SELECT 1 FROM dead_letters WHERE subscriber = ? AND session_key = ? AND replay = 1 LIMIT 1',
    subscriber,
    key,
  );
  if (waiting.length === 0) yield [removeLane(queue, key)];
  else ctx.effects.queues.add(queue);
  return true;
}

function forgetDeadLetter(subscriber: string, no: number): Query {
  return { sql: 'DELETE FROM dead_letters WHERE subscriber = ? AND event_no = ?', params: [subscriber, no] };
}

export interface FailEvents extends SettleEvents {
  readonly failed: {
    readonly no: number;
    readonly eventId: string;
    readonly eventType: string;
    readonly replay: boolean;
  };
  readonly error: string;
  /** Attempts and waits this event has had, this one included. */
  readonly attempts: number;
  readonly waits: number;
  readonly retryInMs: number;
  /** It had its last attempt: keep it as a dead letter and let the lane go on. */
  readonly dead: boolean;
}

/** A subscriber failed an event: the lane waits and tries again, or goes on without it. */
export function* failEvents(ctx: TxContext, args: FailEvents): Tx<boolean> {
  const scope = yield* enter(ctx, args.context);
  const { failed, dead, attempts, waits } = args;
  // The event about the failure joins the conversation's log, so its lock comes before the lane's.
  yield* lockKey(ctx, args.key);
  const error = storableText(args.error, 'the error').slice(0, 2000);
  const nextNo = (dead && !failed.replay ? failed.no : args.delivered.upTo) + 1;
  const after = dead
    ? { ...afterSuccess(nextNo), error }
    : { nextNo, dueAt: ctx.now + args.retryInMs, attempts, waits, error, done: false };
  if (!(yield* advance(ctx, args, after))) return false;
  if (dead) yield* deadLetter(ctx, args, error);
  const first = attempts + waits === 1;
  if ((first || dead) && failed.eventType !== 'hook:failed') yield* tellFailure(ctx, scope.subscribers, args, error);
  return true;
}

function* deadLetter(ctx: TxContext, args: FailEvents, error: string): Tx<void> {
  yield* query(
    `INSERT INTO dead_letters (subscriber, event_no, session_key, event_id, attempts, error, at, replay)
     VALUES (?, ?, ?, ?, ?, ?, ?, 0)
     ON CONFLICT (subscriber, event_no) DO UPDATE SET attempts = excluded.attempts, error = excluded.error,
       at = excluded.at, replay = 0`,
    args.subscriber,
    args.failed.no,
    args.key,
    args.failed.eventId,
    args.attempts,
    error,
    ctx.now,
  );
}

function* tellFailure(ctx: TxContext, subscribers: readonly Subscriber[], args: FailEvents, error: string): Tx<void> {
  const about = yield* EVENTS.selectOne('WHERE no = ?', args.failed.no);
  if (about === undefined || isUnreadable(about.event)) return;
  const { session_id, session_key, platform, user_id, kind } = about.event;
  const { attempts, dead, subscriber } = args;
  yield* record(ctx, subscribers, [
    {
      id: `${args.failed.eventId}:${subscriber}:${dead ? 'dead' : 'failed'}:${args.token}`,
      sessionSeq: null,
      place: { session_id, session_key, platform, user_id, kind, instance: args.context.instanceId },
      draft: { type: 'hook:failed', fields: { subscriber, event_id: args.failed.eventId, attempts, error, dead } },
      except: subscriber,
    },
  ]);
}
