import type { EventDraft, EventPlace, EventType, MoiraiEvent } from '../../lifecycle/events.ts';
import { matches } from '../../lifecycle/events.ts';
import type { Session } from '../../lifecycle/session.ts';
import {
  type Ask,
  batch,
  numberOf,
  type Param,
  type Query,
  remembered,
  repeated,
  type Tx,
  type TxContext,
} from '../transaction.ts';

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

/**
 * Appends events to the log and to the lanes of whoever subscribed, in the transaction of the change they describe.
 * The caller holds the lock of the conversation, so numbers rise in commit order within it.
 */
export function* record(ctx: TxContext, subscribers: readonly Subscriber[], events: readonly EventToWrite[]): Tx<void> {
  const [written] = yield* batch(appending(ctx, events));
  yield* openLanes(ctx, subscribers, written);
}

export interface NumberedEvent extends EventToWrite {
  readonly no: number;
}

const INSERT_EVENTS = remembered(
  (count: number) => `INSERT INTO events (session_id, session_seq, session_key, type, at, body)
    VALUES ${repeated('(?, ?, ?, ?, ?, ?)', count)}`,
);

/** The first half of `record`, for whoever writes more at once. */
export function appending(ctx: TxContext, events: readonly EventToWrite[]): Ask<NumberedEvent[]> {
  const queries: Query[] = [];
  for (let first = 0; first < events.length; first += EVENTS_PER_INSERT) {
    queries.push(insertion(ctx, events.slice(first, first + EVENTS_PER_INSERT)));
  }
  return {
    queries,
    read: (answers) => {
      const numbers = answers.flat().map((row) => numberOf(row, 'no'));
      numbers.sort((a, b) => a - b);
      return events.map((event, i) => ({ ...event, no: numbers[i] ?? 0 }));
    },
  };
}

/** As many as make one statement cheap per event; more would be more texts for the engine to know, for nothing. */
const EVENTS_PER_INSERT = 32;

function insertion(ctx: TxContext, events: readonly EventToWrite[]): Query {
  const at = new Date(ctx.now).toISOString();
  const params: Param[] = [];
  for (const { draft, id, sessionSeq, place } of events) {
    const body: MoiraiEvent = { id, session_seq: sessionSeq, type: draft.type, at, ...place, ...draft.fields };
    const key = place.session_key ?? NO_KEY;
    params.push(place.session_id, sessionSeq, key, draft.type, ctx.now, JSON.stringify(body));
  }
  return { sql: INSERT_EVENTS(events.length), params, returns: 'numbers' };
}

/** The queue of a subscriber's events. */
export function queueOf(subscriber: string): string {
  return `events/${subscriber}`;
}

interface Lane {
  readonly queue: string;
  readonly key: string;
  readonly first: number;
  last: number;
}

function widen(lanes: Map<string, Lane>, subscriber: string, key: string, no: number): void {
  const id = `${subscriber} ${key}`;
  const lane = lanes.get(id);
  if (lane === undefined) lanes.set(id, { queue: queueOf(subscriber), key, first: no, last: no });
  else lane.last = no;
}

const INSERT_LANES = remembered(
  (count: number) => `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted)
    VALUES ${repeated('(?, ?, ?, ?, 0, 0, 0, 0)', count)}
    ON CONFLICT (queue, key) DO UPDATE SET last_no = excluded.last_no`,
);

/**
 * The second half of `record`. An idle lane has no row: everything before this event was delivered, so a new row
 * begins with it, due at once: no clock that is set back later can hold it up. A lane that has one keeps its place, its
 * claim and its backoff, and only grows.
 */
export function* openLanes(
  ctx: TxContext,
  subscribers: readonly Subscriber[],
  events: readonly NumberedEvent[],
): Tx<void> {
  const lanes = lanesOf(subscribers, events);
  if (lanes.length === 0) return;
  for (const { queue } of lanes) ctx.effects.queues.add(queue);
  // A statement per conversation: the same few texts over and over, which the engine knows already.
  yield [...Map.groupBy(lanes, ({ key }) => key).values()].map((group) => ({
    sql: INSERT_LANES(group.length),
    params: group.flatMap(({ queue, key, first, last }) => [queue, key, first, last]),
  }));
}

function lanesOf(subscribers: readonly Subscriber[], events: readonly NumberedEvent[]): Lane[] {
  const lanes = new Map<string, Lane>();
  for (const { draft, place, no, except } of events) {
    for (const subscriber of subscribers) {
      if (except !== subscriber.name && listens(subscriber, draft.type)) {
        widen(lanes, subscriber.name, place.session_key ?? NO_KEY, no);
      }
    }
  }
  return [...lanes.values()];
}

export function listens(subscriber: Subscriber, type: EventType | string): boolean {
  return subscriber.patterns.some((pattern) => matches(pattern, type));
}
