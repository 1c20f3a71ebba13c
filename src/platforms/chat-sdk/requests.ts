import { AsyncLocalStorage } from 'node:async_hooks';
import type { WebhookOptions } from './adapter.ts';

/** Servers wait about so long for an answer. */
const LONGEST_MS = 25_000;

/** A webhook that an adapter is working on. */
export interface WebhookScope {
  readonly tasks: Set<Promise<unknown>>;
  /** Of what it holds with others: they succeed or fail together. */
  readonly locks: Set<string>;
  /** What is taken back if it fails. */
  readonly undo: (() => void)[];
  /** Resolves when the adapter has nothing more to do, and tells whether all of it was taken. */
  readonly settled: Promise<boolean>;
  failed: boolean;
}

/**
 * Webhooks under way. An adapter answers as soon as it has read one, and goes on beside; here the answer waits for all that
 * the adapter began with it, wherever in its code, and is a success only if the inbox has taken everything.
 */
export class WebhookRequests {
  readonly #current = new AsyncLocalStorage<WebhookScope>();
  readonly #open = new Set<WebhookScope>();

  /** The webhook on whose behalf this code runs; null for none. */
  get current(): WebhookScope | null {
    return this.#current.getStore() ?? null;
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
    const { promise: settled, resolve } = Promise.withResolvers<boolean>();
    const scope: WebhookScope = { tasks: new Set(), locks: new Set(), undo: [], settled, failed: false };
    this.#open.add(scope);
    try {
      const response = await this.#current.run(scope, () => handle({ waitUntil: (task) => this.track(scope, task) }));
      await this.#finish(scope);
      resolve(!scope.failed);
      await this.#joinPeers(scope);
      return scope.failed ? null : response;
    } catch (thrown) {
      scope.failed = true;
      throw thrown;
    } finally {
      resolve(!scope.failed);
      for (const undo of scope.undo.splice(0)) if (scope.failed) undo();
      this.#open.delete(scope);
    }
  }

  async #finish(scope: WebhookScope): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => resolve('late'), LONGEST_MS);
    // A task may begin others.
    while (scope.tasks.size > 0 && !scope.failed) {
      if ((await Promise.race([Promise.all(scope.tasks), late])) === 'late') scope.failed = true;
    }
    clearTimeout(timer);
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
