import { MoiraiError } from '../errors/moirai-error.ts';
import { SESSION_KINDS } from '../lifecycle/states.ts';
import type { Timers } from '../queue/timers.ts';
import type { PruneRule } from '../store/transactions/deletion.ts';
import type { Engine } from './engine.ts';
import { ExpiryWatcher } from './expiry-watcher.ts';
import { isLeaseLost } from './instance.ts';

export interface UpkeepOptions {
  readonly heartbeatMs: number;
  /** How often to look for the dead. */
  readonly reapMs?: number;
  readonly timers: Timers;
  readonly wallClock: () => number;
  /** Something went wrong that will be tried again. */
  readonly failed: (error: MoiraiError) => void;
  /** The lease ran out: this instance is over. */
  readonly lost: () => void;
  /** Also end what expires. A process beside the gateway (`moirai run`) leaves that to it. */
  readonly expire: boolean;
  /** Settles what an expiry must not end without a word; done at the start, before anything expires. */
  readonly beforeExpiry?: () => Promise<void>;
  /** How long an ended session is kept, by kind, and `events`; null is for good. Without it nothing is removed. */
  readonly retention?: Readonly<Record<string, number | null>>;
}

const REAP_MS = 500;
const RECONCILE_MS = 10_000;
const INDEX_MS = 3000;
const FORGET_MS = 3_600_000;
const KEEP_LOST_MS = 7 * 24 * 3_600_000;
const PRUNE_MS = 3_600_000;
/** Messages and requests that are sent again are known by the turns of their sessions: for a day that is promised. */
const LEAST_RETENTION_MS = 24 * 3_600_000;

/** What a long-lived process does beside its work: it keeps its lease, and looks after those who lost theirs. */
export class Upkeep {
  readonly #engine: Engine;
  readonly #options: UpkeepOptions;
  readonly #watcher: ExpiryWatcher | null;
  readonly #cancels = new Map<string, () => void>();
  readonly #running = new Set<Promise<unknown>>();
  #stopped = false;

  constructor(engine: Engine, options: UpkeepOptions) {
    this.#engine = engine;
    this.#options = options;
    const { timers, wallClock, failed } = options;
    this.#watcher = options.expire ? new ExpiryWatcher(engine, timers, wallClock, failed) : null;
  }

  /** Settles what others left, ends what is overdue, then keeps doing both. */
  async start(): Promise<void> {
    this.#every('beat', this.#options.heartbeatMs, () => this.#beat());
    await this.#engine.reap();
    await this.#settleBeforeExpiry();
    await this.#watcher?.start();
    this.#every('reap', this.#options.reapMs ?? REAP_MS, () => this.#engine.reap());
    this.#every('reconcile', RECONCILE_MS, () => this.#engine.reconcile());
    this.#every('index', INDEX_MS, () => this.#engine.store.write('indexMessages', { limit: 500 }));
    this.#every('forget', FORGET_MS, () =>
      this.#engine.store.write('forgetInstances', { lostBefore: this.#options.wallClock() - KEEP_LOST_MS }),
    );
    if (this.#options.retention !== undefined) this.#every('prune', PRUNE_MS, () => this.#prune());
  }

  /** Until it is done: what expires before would end without a word, or by rules that do not count any more. */
  async #settleBeforeExpiry(): Promise<void> {
    const { beforeExpiry, failed, timers } = this.#options;
    for (let done = beforeExpiry === undefined; !done && !this.#stopped; ) {
      try {
        await beforeExpiry?.();
        done = true;
      } catch (thrown) {
        failed(MoiraiError.wrap(thrown));
        await new Promise<void>((resolve) => timers.after(REAP_MS, resolve));
      }
    }
  }

  /** Removes what was kept long enough, and stops in between when it is told to. */
  async #prune(): Promise<void> {
    for (const { kind, olderThanMs } of pruneRules(this.#options.retention ?? {})) {
      const rule = { kind, olderThanMs: Math.max(olderThanMs, LEAST_RETENTION_MS) };
      for (let removed = 1; removed > 0 && !this.#stopped; ) removed = await this.#engine.prune(rule);
    }
    const olderThanMs = this.#options.retention?.events ?? null;
    if (olderThanMs === null) return;
    const kept = Math.max(olderThanMs, LEAST_RETENTION_MS);
    for (let next: number | null = 0; next !== null && !this.#stopped; ) {
      next = await this.#engine.pruneEvents(kept, next);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#cancels.values()) cancel();
    await this.#watcher?.stop();
    await Promise.allSettled(this.#running);
  }

  async #beat(): Promise<void> {
    try {
      await this.#engine.beat();
    } catch (thrown) {
      if (!isLeaseLost(thrown)) throw thrown;
      this.#stopped = true;
      this.#options.lost();
    }
  }

  /** Does something again and again, with a pause in between, whatever it does. */
  #every(name: string, ms: number, action: () => Promise<unknown>): void {
    if (this.#stopped) return;
    const again = (): void => {
      const run: Promise<unknown> = action()
        .catch((thrown: unknown) => this.#options.failed(MoiraiError.wrap(thrown)))
        .finally(() => {
          this.#running.delete(run);
          this.#every(name, ms, action);
        });
      this.#running.add(run);
    };
    this.#cancels.set(name, this.#options.timers.after(ms, again));
  }
}

/** What `sessions.retention` says, as rules for those kinds that are not kept for good. */
export function pruneRules(retention: Readonly<Record<string, number | null>>): PruneRule[] {
  return SESSION_KINDS.flatMap((kind) => {
    const olderThanMs = retention[kind] ?? null;
    return olderThanMs === null ? [] : [{ kind, olderThanMs }];
  });
}
