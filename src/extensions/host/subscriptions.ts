import type { Dispatcher, NewSubscriber } from '../../events/dispatcher.ts';
import { RemovedSubscribers } from '../../events/removed-subscribers.ts';
import type { Logger } from '../../log/logger.ts';
import type { Store } from '../../store/port.ts';
import type { ExtensionHost } from './extension-host.ts';

/** What hooks and plugins are started with. */
export interface ExtensionOptions {
  readonly home: string;
  /** Runs their processes. */
  readonly host: ExtensionHost;
  readonly dispatcher: Pick<Dispatcher, 'subscribe' | 'leave'>;
  readonly store: Store;
  readonly log: Logger;
  /** The gateway's own; extensions get the harmless part of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** How often an event is tried before it is kept as a dead letter. */
  readonly maxAttempts: number;
  /** How long an extension may work on one event, unless its manifest says so. */
  readonly timeoutMs: number;
}

/** An extension that hears events. */
export interface Listener extends Pick<NewSubscriber, 'name' | 'events' | 'handle' | 'capacity'> {
  /** Its own deadline for one event; the deadline of the queue is for what must not happen. */
  readonly timeoutMs: number;
  readonly concurrency: number;
}

/** How an extension has fared since it was first loaded. */
export class ExtensionRecord {
  /** Events. */
  handled = 0;
  failed = 0;
  /** How often its process died and was started again. */
  restarts = 0;
  lastError: string | null = null;

  countFailure(error: Error): void {
    this.failed++;
    this.lastError = error.message;
  }
}

const MARGIN_MS = 5000;

/** The extensions of one kind as subscribers of the log, each under `hook:NAME` or `plugin:NAME`. */
export class Subscriptions {
  readonly #word: string;
  readonly #options: ExtensionOptions;
  readonly #removed: RemovedSubscribers;
  /** By name: what it was subscribed with. */
  readonly #subscribed = new Map<string, string>();

  constructor(word: string, options: ExtensionOptions) {
    this.#word = word;
    this.#options = options;
    const { store, host } = options;
    this.#removed = new RemovedSubscribers(store, host.timers, (name) => name.startsWith(subscriberOf(word, '')));
  }

  /** Serves these extensions and no others. One that is left out keeps its place in the log. */
  async serve(listeners: readonly Listener[]): Promise<void> {
    const left = [...this.#subscribed.keys()].filter((name) => !listeners.some((listener) => listener.name === name));
    for (const name of left) this.#subscribed.delete(name);
    await Promise.all(left.map((name) => this.#options.dispatcher.leave(subscriberOf(this.#word, name))));
    for (const listener of listeners) await this.#subscribe(listener);
  }

  /** Takes back the subscriptions of extensions that have long been missing among these. */
  async tidy(names: readonly string[]): Promise<void> {
    await this.#removed.tidy(names.map((name) => subscriberOf(this.#word, name)));
  }

  async #subscribe(listener: Listener): Promise<void> {
    const { name, events, timeoutMs, concurrency } = listener;
    const wish = JSON.stringify([events, timeoutMs]);
    if (this.#subscribed.get(name) === wish) return;
    const { dispatcher, maxAttempts } = this.#options;
    await dispatcher.subscribe({
      ...{ name: subscriberOf(this.#word, name), events, from: 'now', concurrency, maxAttempts },
      timeoutMs: timeoutMs + MARGIN_MS,
      handle: (event, signal) => listener.handle(event, signal),
      capacity: () => listener.capacity?.() ?? { lanes: concurrency, againInMs: 0 },
    });
    this.#subscribed.set(name, wish);
  }
}

/** The name under which an extension is in the store. */
export function subscriberOf(word: string, name: string): string {
  return `${word}:${name}`;
}
