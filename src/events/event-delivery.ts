import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { MoiraiEvent } from '../lifecycle/events.ts';
import { type Capacity, type LaneWork, type QueueDeps, QueueWorker } from '../queue/queue-worker.ts';
import { backoff } from '../queue/retry-until-known.ts';
import type { Store } from '../store/port.ts';
import type { Delivered, EventLane, LaneEvent } from '../store/transactions/event-queue.ts';
import { queueOf } from '../store/transactions/record.ts';

/** A named consumer of the log. */
export interface SubscriberSpec {
  readonly name: string;
  /** Exact types, `prefix:*` or `*`. */
  readonly events: readonly string[];
  /** Throwing `subscriber_unavailable` means the receiver is down: the lane waits, and no attempt is counted. */
  readonly handle: (event: MoiraiEvent, signal: AbortSignal) => unknown;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  /** Conversations served at the same time. */
  readonly concurrency: number;
  /** How many of them make sense now, where that changes: one that rests is not bothered with each of its lanes. */
  readonly capacity?: () => Capacity;
}

export interface EventDeps extends QueueDeps {
  readonly store: Store;
  /** A subscriber did not take an event, and gets it again. */
  readonly retried?: (subscriber: string) => void;
}

const EVENTS_PER_CLAIM = 16;
const RETRY_MS = 1000;
const RETRY_CAP_MS = 300_000;
const WAIT_CAP_MS = 30_000;

/** The answer of a handler that was still at work when the process stopped. */
const ABANDONED = Symbol('abandoned');

/** Serves one subscriber: hands each conversation's events over in order, and settles how it went. */
export function eventWorker(spec: SubscriberSpec, deps: EventDeps): QueueWorker<EventLane> {
  const { name, concurrency, capacity } = spec;
  const delivery = new EventDelivery(spec, deps);
  return new QueueWorker(
    {
      queue: queueOf(name),
      concurrency,
      ...(capacity === undefined ? {} : { capacity }),
      claim: (request) =>
        deps.store.write('claimEvents', { ...request, subscriber: name, eventsPerLane: EVENTS_PER_CLAIM }),
      process: (lane, work) => delivery.process(lane, work),
    },
    deps,
  );
}

class EventDelivery {
  readonly #spec: SubscriberSpec;
  readonly #deps: EventDeps;

  constructor(spec: SubscriberSpec, deps: EventDeps) {
    this.#spec = spec;
    this.#deps = deps;
  }

  async process(lane: EventLane, work: LaneWork): Promise<void> {
    const replayed: number[] = [];
    for (const [i, item] of lane.events.entries()) {
      const error = await this.#hand(item.event, work.stopping);
      const delivered = { upTo: deliveredBefore(lane, i), replayed };
      if (error === ABANDONED) return this.#acknowledge(lane, work, delivered);
      if (error !== null) return this.#fail(lane, work, { item, first: i === 0, delivered, error });
      if (item.replay) replayed.push(item.no);
    }
    await this.#acknowledge(lane, work, { upTo: lane.upTo, replayed });
    for (const no of lane.unreadable) await this.#passOver(no, work);
  }

  /** An event that cannot be read is the same to every later attempt. */
  async #passOver(no: number, work: LaneWork): Promise<void> {
    const fields = { work: 'event', id: String(no), attempts: 1, error: 'its row cannot be read' } as const;
    const event = {
      id: `event:${no}:set_aside:${this.#spec.name}`,
      draft: { type: 'work:set_aside', fields },
    } as const;
    await work.settle((context) => this.#deps.store.write('announceInstance', { context, event }));
  }

  async #acknowledge({ subscriber, key, token }: EventLane, work: LaneWork, delivered: Delivered): Promise<void> {
    await work.settle((context) => this.#deps.store.write('ackEvents', { context, subscriber, key, token, delivered }));
  }

  /** Calls the handler behind its deadline; null when it took the event. A handler that hangs is left behind. */
  async #hand(event: MoiraiEvent, stopping: AbortSignal): Promise<MoiraiError | typeof ABANDONED | null> {
    if (stopping.aborted) return ABANDONED;
    const abort = new AbortController();
    const { name, timeoutMs } = this.#spec;
    let cancel: () => void = () => undefined;
    const abandoned = new Promise<typeof ABANDONED>((resolve) => {
      stopping.addEventListener('abort', () => resolve(ABANDONED), { signal: abort.signal });
    });
    const deadline = new Promise<never>((_, reject) => {
      cancel = this.#deps.timers.after(timeoutMs, () => {
        const error = new MoiraiError('subscriber_timeout', `${name} did not answer ${event.id} in ${timeoutMs} ms`);
        abort.abort(error);
        reject(error);
      });
    });
    try {
      const handled = Promise.resolve().then(() => this.#spec.handle(event, abort.signal));
      const outcome = await Promise.race([handled, deadline, abandoned]);
      return outcome === ABANDONED ? ABANDONED : null;
    } catch (thrown) {
      return MoiraiError.wrap(thrown, 'subscriber_failed');
    } finally {
      cancel();
      abort.abort();
    }
  }

  async #fail(
    lane: EventLane,
    work: LaneWork,
    { item, first, delivered, error }: { item: LaneEvent; first: boolean; delivered: Delivered; error: MoiraiError },
  ): Promise<void> {
    const { random, retried, store } = this.#deps;
    const unreachable = hasCode(error, 'subscriber_unavailable');
    // What the lane counted belongs to its first event; a later one fails for the first time.
    const attempts = (first ? lane.attempts : 0) + (unreachable ? 0 : 1);
    const waits = (first ? lane.waits : 0) + (unreachable ? 1 : 0);
    const dead = !unreachable && attempts >= this.#spec.maxAttempts;
    if (!dead) retried?.(this.#spec.name);
    const retryInMs = unreachable
      ? backoff(waits, RETRY_MS, WAIT_CAP_MS, random)
      : backoff(attempts, RETRY_MS, RETRY_CAP_MS, random);
    await work.settle((context) =>
      store.write('failEvents', {
        context,
        subscriber: lane.subscriber,
        key: lane.key,
        token: lane.token,
        delivered,
        failed: { no: item.no, eventId: item.event.id, eventType: item.event.type, replay: item.replay },
        error: error.message,
        attempts,
        waits,
        retryInMs,
        dead,
      }),
    );
  }
}

/** The number before the first event that was not delivered: that one is next again. */
function deliveredBefore(lane: EventLane, index: number): number {
  const fresh = lane.events.slice(index).find((item) => !item.replay);
  return fresh === undefined ? lane.upTo : fresh.no - 1;
}
