import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { MoiraiEvent } from '../lifecycle/events.ts';
import type { Store } from '../store/port.ts';
import type { ClaimedLane, Delivered, LaneEvent, LaneTicket } from '../store/transactions/lanes.ts';
import type { CommandContext } from '../store/transactions/sessions.ts';
import type { Timers } from './timers.ts';

/** Somebody who wants to hear of events. */
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

export interface Capacity {
  /** Conversations at the same time; 0 for none. */
  readonly lanes: number;
  /** When to ask again, if there are none. */
  readonly againInMs: number;
}

/** What a courier works with; shared by all couriers of a process. */
export interface CourierDeps {
  readonly store: Store;
  readonly timers: Timers;
  readonly random: () => number;
  /** A fresh command id under this process's lease. */
  readonly commandContext: () => CommandContext;
  readonly failed: (error: MoiraiError) => void;
  /** Somebody did not take an event, and gets it again. */
  readonly retried?: (subscriber: string) => void;
}

const EVENTS_PER_CLAIM = 16;
const POLL_MS = 1000;
/** Between two looks at lanes that are due and may not be taken yet. */
const SHORTEST_SLEEP_MS = 20;
const STOP_GRACE_MS = 2000;
const RETRY_BASE_MS = 1000;
const RETRY_CAP_MS = 300_000;
const WAIT_CAP_MS = 30_000;

/** The answer of a handler that was still at work when the process stopped. */
const ABANDONED = Symbol('abandoned');

/**
 * Serves one subscriber: claims its due lanes, hands each lane's events over in order, and says how it went. A lane
 * that fails waits by itself; the others go on. A handler that hangs occupies one slot until its deadline.
 */
export class Courier {
  readonly spec: SubscriberSpec;
  readonly #deps: CourierDeps;
  #inFlight = 0;
  #claiming = false;
  #woken = false;
  #stopped = false;
  /** Kept until a claim is answered: asking again with the same one finds the lanes of a lost answer. */
  #claimToken: string | null = null;
  #full = false;
  #cancelTimer: () => void = () => undefined;
  readonly #idle = new Set<() => void>();
  readonly #abandon = new AbortController();

  constructor(spec: SubscriberSpec, deps: CourierDeps) {
    this.spec = spec;
    this.#deps = deps;
  }

  /** There may be something to do. Cheap, and safe to call at any time. */
  wake(): void {
    this.#woken = true;
    if (!this.#claiming && !this.#stopped) void this.#claim();
  }

  /**
   * Takes no new lanes and lets the handlers at work finish for a while. What they have not taken by then is given
   * back uncounted, for the next start.
   */
  async stop(graceMs = STOP_GRACE_MS): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    const cancel = this.#deps.timers.after(graceMs, () => this.#abandon.abort());
    while (this.#inFlight > 0 || this.#claiming) await new Promise<void>((done) => this.#idle.add(done));
    cancel();
  }

  async #claim(): Promise<void> {
    this.#claiming = true;
    let wait = POLL_MS;
    try {
      while (this.#woken && !this.#stopped && this.#inFlight < this.spec.concurrency) {
        this.#woken = false;
        wait = await this.#claimOnce();
      }
    } catch (thrown) {
      if (hasCode(thrown, 'store_closed')) this.#stopped = true;
      else this.#deps.failed(MoiraiError.wrap(thrown));
    } finally {
      this.#claiming = false;
      this.#settled();
    }
    // A slot came free, or work arrived, while the last claim was under way.
    if (this.#woken && this.#inFlight < this.spec.concurrency) this.#sleep(0);
    else this.#sleep(wait);
  }

  /** Returns how long to sleep when nobody calls. */
  async #claimOnce(): Promise<number> {
    const { timeoutMs, name, concurrency, capacity } = this.spec;
    const { lanes: most, againInMs } = capacity?.() ?? { lanes: concurrency, againInMs: 0 };
    const free = Math.min(most, concurrency) - this.#inFlight;
    if (free <= 0) return Math.max(SHORTEST_SLEEP_MS, againInMs);
    const context = this.#deps.commandContext();
    this.#claimToken ??= context.commandId;
    const token = this.#claimToken;
    const { lanes, nextDueInMs } = await this.#deps.store.write('claimLanes', {
      context,
      subscriber: name,
      token,
      lanes: free,
      // Half of the slots stay free of lanes that failed before: what always fails cannot crowd out what works.
      retries: Math.max(1, Math.floor(this.spec.concurrency / 2) - this.#inFlight),
      eventsPerLane: EVENTS_PER_CLAIM,
      claimMs: timeoutMs * EVENTS_PER_CLAIM + 60_000,
    });
    this.#claimToken = null;
    for (const lane of lanes) {
      this.#inFlight++;
      void this.#serve(lane);
    }
    // All slots taken: there may be more, for the first one that comes free.
    this.#full = lanes.length === free;
    return nextDueInMs === null ? POLL_MS : Math.min(POLL_MS, Math.max(SHORTEST_SLEEP_MS, nextDueInMs));
  }

  #sleep(ms: number): void {
    this.#cancelTimer();
    if (!this.#stopped) this.#cancelTimer = this.#deps.timers.after(ms, () => this.wake());
  }

  async #serve(lane: ClaimedLane): Promise<void> {
    try {
      await this.#deliver(lane);
    } catch (thrown) {
      // The store did not take the acknowledgement: the claim runs out, and the events come again.
      this.#deps.failed(MoiraiError.wrap(thrown));
    } finally {
      this.#inFlight--;
      this.#settled();
      // Otherwise whoever adds to a lane, or its retry, calls.
      if (this.#full) this.wake();
    }
  }

  async #deliver(lane: ClaimedLane): Promise<void> {
    const replayed: number[] = [];
    for (const [i, item] of lane.events.entries()) {
      const error = await this.#hand(item.event);
      const delivered = { upTo: deliveredBefore(lane, i), replayed };
      if (error === ABANDONED) return this.#acknowledge(lane, delivered);
      if (error !== null) return this.#fail(lane, item, i === 0, delivered, error);
      if (item.replay) replayed.push(item.no);
    }
    await this.#acknowledge(lane, { upTo: lane.upTo, replayed });
  }

  #acknowledge(lane: ClaimedLane, delivered: Delivered): Promise<void> {
    const { store, commandContext: context } = this.#deps;
    return this.#retryUntilKnown(() => store.write('ackLane', { context: context(), lane: ticketOf(lane), delivered }));
  }

  /** Calls the handler behind its deadline; null when it took the event. */
  async #hand(event: MoiraiEvent): Promise<MoiraiError | typeof ABANDONED | null> {
    if (this.#abandon.signal.aborted) return ABANDONED;
    const abort = new AbortController();
    const { name, timeoutMs } = this.spec;
    let cancel: () => void = () => undefined;
    const abandoned = new Promise<typeof ABANDONED>((resolve) => {
      this.#abandon.signal.addEventListener('abort', () => resolve(ABANDONED), { signal: abort.signal });
    });
    const deadline = new Promise<never>((_, reject) => {
      cancel = this.#deps.timers.after(timeoutMs, () => {
        const error = new MoiraiError('subscriber_timeout', `${name} did not answer ${event.id} in ${timeoutMs} ms`);
        abort.abort(error);
        reject(error);
      });
    });
    try {
      const handled = Promise.resolve().then(() => this.spec.handle(event, abort.signal));
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
    lane: ClaimedLane,
    item: LaneEvent,
    first: boolean,
    delivered: Delivered,
    error: MoiraiError,
  ): Promise<void> {
    const down = hasCode(error, 'subscriber_unavailable');
    // What the lane counted belongs to its first event; a later one fails for the first time.
    const attempts = (first ? lane.attempts : 0) + (down ? 0 : 1);
    const waits = (first ? lane.waits : 0) + (down ? 1 : 0);
    const failure = {
      lane: ticketOf(lane),
      delivered,
      failed: { no: item.no, eventId: item.event.id, eventType: item.event.type, replay: item.replay },
      error: error.message,
      attempts,
      waits,
      retryInMs: down ? this.#backoff(waits, WAIT_CAP_MS) : this.#backoff(attempts, RETRY_CAP_MS),
      dead: !down && attempts >= this.spec.maxAttempts,
    };
    if (!failure.dead) this.#deps.retried?.(this.spec.name);
    await this.#retryUntilKnown(() =>
      this.#deps.store.write('failLane', { context: this.#deps.commandContext(), ...failure }),
    );
  }

  /** An acknowledgement that did not get through is repeated: else the lane would stand still until its claim ends. */
  async #retryUntilKnown<T>(write: () => Promise<T>): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        await write();
        return;
      } catch (thrown) {
        if (this.#stopped || !hasCode(thrown, 'store_unreachable', 'store_outcome_unknown')) throw thrown;
        await new Promise<void>((done) => this.#deps.timers.after(this.#backoff(failures, WAIT_CAP_MS), done));
      }
    }
  }

  #backoff(failures: number, cap: number): number {
    const base = Math.min(cap, RETRY_BASE_MS * 2 ** Math.min(failures - 1, 20));
    return Math.round(base * (0.8 + 0.4 * this.#deps.random()));
  }

  #settled(): void {
    if (this.#inFlight > 0 || this.#claiming) return;
    for (const done of this.#idle) done();
    this.#idle.clear();
  }
}

/** The number before the first event that was not delivered: that one is next again. */
function deliveredBefore(lane: ClaimedLane, index: number): number {
  const fresh = lane.events.slice(index).find((item) => !item.replay);
  return fresh === undefined ? lane.upTo : fresh.no - 1;
}

function ticketOf({ subscriber, key, token }: ClaimedLane): LaneTicket {
  return { subscriber, key, token };
}
