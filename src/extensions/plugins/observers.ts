import type { Dispatcher } from '../../events/dispatcher.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Logger } from '../../log/logger.ts';
import { asSubscriber } from '../host/extension-process.ts';
import type { LivePlugin } from './live-plugin.ts';

export interface ObserverSettings {
  /** How long a plugin may work on one event, unless it says so itself. */
  readonly timeoutMs: number;
  readonly maxAttempts: number;
}

/** The name under which a plugin's observers are in the store. */
export function subscriberOf(plugin: string): string {
  return `plugin:${plugin}`;
}

/** Conversations that one plugin hears at the same time; it has one process. */
const CONCURRENCY = 8;
/** Our own deadline comes first; the courier's is for what must not happen. */
const MARGIN_MS = 5000;

/** Tells plugins what happens: each is one subscriber of the log, whatever process it is in at the moment. */
export class Observers {
  readonly #dispatcher: Pick<Dispatcher, 'subscribe' | 'leave'>;
  readonly #settings: ObserverSettings;
  readonly #log: Logger;
  /** By plugin: what it was subscribed with. */
  readonly #subscribed = new Map<string, string>();

  constructor(dispatcher: Pick<Dispatcher, 'subscribe' | 'leave'>, settings: ObserverSettings, log: Logger) {
    this.#dispatcher = dispatcher;
    this.#settings = settings;
    this.#log = log;
  }

  /** Serves these plugins and no others. Who is left keeps its place in the log. */
  async serve(plugins: readonly LivePlugin[]): Promise<void> {
    const listening = plugins.filter(({ offer }) => offer.events.length > 0);
    for (const name of this.#subscribed.keys()) {
      if (!listening.some((live) => live.name === name)) await this.#leave(name);
    }
    for (const live of listening) await this.#subscribe(live);
  }

  async #subscribe(live: LivePlugin): Promise<void> {
    const { name, offer } = live;
    const timeoutMs = this.#timeoutOf(live);
    const wish = JSON.stringify([offer.events, timeoutMs]);
    if (this.#subscribed.get(name) === wish) return;
    await this.#dispatcher.subscribe({
      ...{ name: subscriberOf(name), events: offer.events, from: 'now', concurrency: CONCURRENCY },
      ...{ timeoutMs: timeoutMs + MARGIN_MS, maxAttempts: this.#settings.maxAttempts },
      handle: (event, signal) => this.#tell(live, event, signal),
    });
    this.#subscribed.set(name, wish);
  }

  async #leave(name: string): Promise<void> {
    this.#subscribed.delete(name);
    await this.#dispatcher.leave(subscriberOf(name));
  }

  async #tell(live: LivePlugin, event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    try {
      await live.call({ what: 'event', event }, { timeoutMs: this.#timeoutOf(live), signal });
      live.record.handled++;
    } catch (thrown) {
      const error = asSubscriber(thrown);
      if (!signal.aborted && error.code !== 'subscriber_unavailable') {
        live.failed(error);
        const { id, type } = event;
        this.#log.warn('plugin failed', { plugin: live.name, event: id, type, error: error.message });
      }
      throw error;
    }
  }

  #timeoutOf({ plugin }: LivePlugin): number {
    return plugin.manifest.timeoutMs ?? this.#settings.timeoutMs;
  }
}
