import { type EventDraft, type EventPlace, type EventType, type MoiraiEvent, matches } from '../../lifecycle/events.ts';
import type { Session } from '../../lifecycle/session.ts';
import { integer, json, nullableInteger, nullableText, Table, text } from '../table.ts';
import { type Param, type Query, remembered, repeated, type Tx, type TxContext } from '../transaction.ts';

export interface Subscriber {
  readonly name: string;
  readonly patterns: readonly string[];
}

export interface EventToWrite {
  readonly draft: EventDraft;
  readonly id: string;
  readonly sessionSeq: number | null;
  readonly place: EventPlace;
  /** A subscriber is never told of its own failure. */
  readonly except?: string;
}

/** The key of events that belong to no conversation. */
export const NO_KEY = '';

export function placeOf(session: Session, instance: string): EventPlace {
  return {
    session_id: session.id,
    session_key: session.key,
    platform: session.platform,
    user_id: session.userId,
    kind: session.kind,
    instance,
  };
}

export const NOWHERE: Omit<EventPlace, 'instance'> = {
  session_id: null,
  session_key: null,
  platform: null,
  user_id: null,
  kind: null,
};

/** Appends events to the log, in the transaction of the change they describe; see `recording`. */
export function* record(ctx: TxContext, subscribers: readonly Subscriber[], events: readonly EventToWrite[]): Tx<void> {
  yield recording(ctx, subscribers, events);
}

const EVENTS = new Table('events', {
  sessionId: nullableText,
  sessionSeq: nullableInteger,
  sessionKey: text,
  type: text,
  at: integer,
  body: json<MoiraiEvent>(),
});
/** As many as make one statement cheap per event; more would be more texts for the engine to know, for nothing. */
const EVENTS_PER_INSERT = 32;

/**
 * The statements that append events to the log and to the lanes of their subscribers. The caller holds the lock of each
 * conversation, so numbers rise in commit order within it.
 */
export function recording(
  ctx: TxContext,
  subscribers: readonly Subscriber[],
  events: readonly EventToWrite[],
): Query[] {
  const at = new Date(ctx.now).toISOString();
  const rows = events.map(({ draft, id, sessionSeq, place }) => ({
    sessionId: place.session_id,
    sessionSeq,
    sessionKey: place.session_key ?? NO_KEY,
    type: draft.type,
    at: ctx.now,
    body: { id, session_seq: sessionSeq, type: draft.type, at, ...place, ...draft.fields },
  }));
  const queries = EVENTS.insertMany(rows, EVENTS_PER_INSERT);
  // A statement per conversation: the same few texts over and over, which the engine knows already.
  for (const [key, written] of Map.groupBy(events, ({ place }) => place.session_key ?? NO_KEY)) {
    const lanes = lanesOf(ctx, subscribers, key, written);
    if (lanes.length > 0) queries.push({ sql: INSERT_LANES(lanes.length), params: lanes.flat() });
  }
  return queries;
}

/** The queue of a subscriber's events. */
export function queueOf(subscriber: string): string {
  return `events/${subscriber}`;
}

/** The number of an event of a conversation, counted back from its newest one. */
const EVENT_NO = '(SELECT no FROM events WHERE session_key = ? ORDER BY no DESC LIMIT 1 OFFSET ?)';
/**
 * An idle lane has no row: everything before this event was delivered, so a new row begins with it, due at once: no
 * clock that is set back later can hold it up. A lane that has one keeps its place, its claim and its backoff, and only
 * grows.
 */
const INSERT_LANES = remembered(
  (count: number) => `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted)
    VALUES ${repeated(`(?, ?, ${EVENT_NO}, ${EVENT_NO}, 0, 0, 0, 0)`, count)}
    ON CONFLICT (queue, key) DO UPDATE SET last_no = excluded.last_no`,
);

/** The parameters of the lanes in which subscribers get the newest events of a conversation. */
function lanesOf(
  ctx: TxContext,
  subscribers: readonly Subscriber[],
  key: string,
  written: readonly EventToWrite[],
): Param[][] {
  const newest = written.length - 1;
  return subscribers.flatMap((subscriber) => {
    const wanted = ({ draft, except }: EventToWrite): boolean =>
      except !== subscriber.name && listens(subscriber, draft.type);
    const first = written.findIndex(wanted);
    if (first < 0) return [];
    const queue = queueOf(subscriber.name);
    ctx.effects.queues.add(queue);
    return [[queue, key, key, newest - first, key, newest - written.findLastIndex(wanted)]];
  });
}

export function listens(subscriber: Subscriber, type: EventType | string): boolean {
  return subscriber.patterns.some((pattern) => matches(pattern, type));
}
