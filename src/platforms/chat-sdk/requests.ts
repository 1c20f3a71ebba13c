import { AsyncLocalStorage } from 'node:async_hooks';
import type { WebhookOptions } from './adapter.ts';

/** Servers wait about so long for an answer. */
const LONGEST_MS = 25_000;

/** A webhook that an adapter is working on. */
export interface WebhookScope {
  readonly tasks: Set<Promise<unknown>>;
  /** Of what it holds with others: they succeed or fail together. */
  readonly locks: Set<string>;
  /** Resolves when the adapter has nothing more to do, and tells whether all of it was taken. */
  readonly settled: Promise<boolean>;
  /** Resolves when it is answered, and tells whether with a success. */
  readonly outcome: Promise<boolean>;
  failed: boolean;
  over: boolean;
}

/**
 * Webhooks under way. An adapter answers as soon as it has read one, and goes on beside; here the answer waits for all that
 * the adapter began with it, wherever in its code, and is a success only if the inbox has taken everything.
 */
export class WebhookRequests {
  readonly #longestMs: number;
  readonly #current = new AsyncLocalStorage<WebhookScope>();
  readonly #open = new Set<WebhookScope>();

  constructor(longestMs: number = LONGEST_MS) {
    this.#longestMs = longestMs;
  }

  /** The webhook on whose behalf this code runs; null for none, also when that was answered meanwhile. */
  get current(): WebhookScope | null {
    const scope = this.#current.getStore();
    return scope === undefined || scope.over ? null : scope;
  }

  /** What a webhook waits for; one that rejects was not taken. */
  track(scope: WebhookScope, task: Promise<unknown>): void {
    const settled = task.then(
      () => undefined,
      () => {
        scope.failed = true;
      },
    );
    scope.tasks.add(settled);
    void settled.finally(() => scope.tasks.delete(settled));
  }

  /** Hands a webhook to the adapter. Null when it has to be brought again. */
  async run(handle: (options: WebhookOptions) => Promise<Response>): Promise<Response | null> {
    const { promise: settled, resolve: settle } = Promise.withResolvers<boolean>();
    const { promise: outcome, resolve: end } = Promise.withResolvers<boolean>();
    const scope: WebhookScope = { tasks: new Set(), locks: new Set(), settled, outcome, failed: false, over: false };
    this.#open.add(scope);
    try {
      const response = await this.#finish(scope, () => handle({ waitUntil: (task) => this.track(scope, task) }));
      settle(!scope.failed);
      await this.#joinPeers(scope);
      return scope.failed ? null : response;
    } catch (thrown) {
      scope.failed = true;
      throw thrown;
    } finally {
      scope.over = true;
      settle(!scope.failed);
      end(!scope.failed);
      this.#open.delete(scope);
    }
  }

  /** The adapter's answer, once all is done that it began; null when that takes too long. */
  async #finish(scope: WebhookScope, handle: () => Promise<Response>): Promise<Response | null> {
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const timer = setTimeout(() => {
      scope.failed = true;
      resolve(null);
    }, this.#longestMs);
    try {
      const response = await Promise.race([this.#current.run(scope, handle), late]);
      // A task may begin others.
      while (scope.tasks.size > 0 && !scope.failed) await Promise.race([Promise.all(scope.tasks), late]);
      return response;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Pieces of one message, as those of an album, are put together by one of the webhooks that brought them. */
  async #joinPeers(scope: WebhookScope): Promise<void> {
    const peers = [...this.#open].filter(
      (other) => other !== scope && [...other.locks].some((lock) => scope.locks.has(lock)),
    );
    const outcomes = await Promise.all(peers.map(({ settled }) => settled));
    if (outcomes.includes(false)) scope.failed = true;
  }
}
