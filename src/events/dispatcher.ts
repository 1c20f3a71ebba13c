import type { QueueWorker } from '../queue/queue-worker.ts';
import type { Effects } from '../store/transaction.ts';
import type { EventLane } from '../store/transactions/event-queue.ts';
import { queueOf } from '../store/transactions/record.ts';
import type { SubscribeFrom } from '../store/transactions/subscribers.ts';
import { type EventDeps, eventWorker, type SubscriberSpec } from './event-delivery.ts';

const DEFAULTS = { timeoutMs: 30_000, maxAttempts: 8, concurrency: 64 };

export type NewSubscriber = Pick<SubscriberSpec, 'name' | 'events' | 'handle'> &
  Partial<Pick<SubscriberSpec, 'timeoutMs' | 'maxAttempts' | 'concurrency' | 'capacity'>> & {
    /** Where it begins when the store has not seen it before; after that it goes on where it was. */
    readonly from?: SubscribeFrom;
  };

/**
 * Hands the log to its subscribers: at least once, in order per conversation, each subscriber on its own. It keeps no
 * position of its own: what is undelivered is in the store, also what was written just before a crash.
 */
export class Dispatcher {
  readonly #deps: EventDeps;
  readonly #workers = new Map<string, QueueWorker<EventLane>>();
  readonly #unlisten: () => void;

  constructor(deps: EventDeps) {
    this.#deps = deps;
    this.#unlisten = deps.store.onCommit((effects) => this.#onCommit(effects));
  }

  /** Registers a subscriber and starts to serve it. */
  async subscribe(subscriber: NewSubscriber): Promise<void> {
    const { from: _, ...spec } = subscriber;
    await this.register(subscriber);
    await this.#workers.get(queueOf(spec.name))?.stop();
    const worker = eventWorker({ ...DEFAULTS, ...spec }, this.#deps);
    this.#workers.set(queueOf(spec.name), worker);
    worker.wake();
  }

  /** Only registers it: what happens is kept for it, until somebody serves it. */
  async register({ name, events, from = 'now' }: Pick<NewSubscriber, 'name' | 'events' | 'from'>): Promise<void> {
    await this.#deps.store.write('subscribe', { name, patterns: events, from });
  }

  /**
   * Stops serving a subscriber here, after `graceMs` for what is in hand. Its lanes stay: somebody else may serve it, or
   * it comes back.
   */
  async leave(name: string, graceMs?: number): Promise<void> {
    const worker = this.#workers.get(queueOf(name));
    this.#workers.delete(queueOf(name));
    await worker?.stop(graceMs);
  }

  /** Takes no new work and waits for what is in hand. */
  async stop(): Promise<void> {
    this.#unlisten();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()));
  }

  #onCommit(effects: Effects): void {
    for (const queue of effects.queues) this.#workers.get(queue)?.wake();
  }
}
