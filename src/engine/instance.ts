import { hasCode } from '../errors/moirai-error.ts';
import type { EventDraft } from '../lifecycle/events.ts';
import { ClaimRegistry } from '../queue/claim-registry.ts';
import type { QueueDeps } from '../queue/queue-worker.ts';
import { type RetryDeps, retryUntilKnown } from '../queue/retry-until-known.ts';
import { processTimers } from '../queue/timers.ts';
import type { WriteResult } from '../store/catalogue.ts';
import type { Store } from '../store/port.ts';
import type { PruneRule } from '../store/transactions/deletion.ts';
import type { InstanceFacts } from '../store/transactions/liveness.ts';
import type { LaneClaim } from '../store/transactions/queue.ts';
import type { Reaped, Stray } from '../store/transactions/reaping.ts';
import type { CommandContext } from '../store/transactions/sessions.ts';
import { type Hold, Holdings } from './holdings.ts';
import { type HostFacts, isProvenDead } from './host.ts';
import type { Ids } from './ids.ts';

export interface EngineOptions {
  readonly store: Store;
  readonly ids: Ids;
  readonly instance: InstanceFacts;
  readonly leaseTtlMs: number;
  /** Replaced in simulations, where processes are not real. */
  readonly provenDead?: typeof isProvenDead;
  /** Time and chance for what is repeated, and who hears of it; the process's own unless given. */
  readonly retry?: Pick<RetryDeps, 'timers' | 'random' | 'failed'>;
}

const REAP_BATCH = 100;
const EXPIRE_BATCH = 100;
const PRUNE_BATCH = 200;
const PRUNE_EVENTS_BATCH = 1000;

/**
 * One process as the store knows it: its lease, the sessions it holds, and what it does for all: it settles what dead
 * instances left, ends what is overdue, removes what was kept long enough.
 */
export class Instance {
  readonly store: Store;
  readonly instance: string;
  /** The claims of queue lanes this process knows of. */
  readonly claims = new ClaimRegistry();
  protected readonly ids: Ids;
  /** The one thing that is kept in memory; the store is right where the two differ. */
  protected readonly holdings: Holdings;
  readonly #options: EngineOptions;
  readonly #retry: RetryDeps;
  #stopped = false;

  protected constructor(options: EngineOptions) {
    this.store = options.store;
    this.instance = options.instance.id;
    this.ids = options.ids;
    this.holdings = new Holdings(options.instance.id);
    this.#options = options;
    const retry = options.retry ?? { timers: processTimers, random: Math.random, failed: () => undefined };
    this.#retry = { ...retry, stopped: () => this.#stopped };
  }

  /** The sessions this process holds. */
  get holds(): readonly Hold[] {
    return this.holdings.all;
  }

  /** A fresh command id under this instance's lease. */
  commandContext(): CommandContext {
    return { instanceId: this.instance, commandId: this.ids.command() };
  }

  /** What a worker of a queue needs of this process; `failed` hears of what is tried again. */
  queueDeps(failed: QueueDeps['failed']): QueueDeps {
    const { timers, random } = this.#retry;
    return { timers, random, commandContext: () => this.commandContext(), claims: this.claims, failed };
  }

  /**
   * Repeats a write that settles something until the store says what came of it, under one command id: done twice it is
   * done once.
   */
  settle<T>(write: (context: CommandContext) => Promise<T>): Promise<T> {
    const context = this.commandContext();
    return retryUntilKnown(() => write(context), this.#retry);
  }

  /** Renews the lease. Throws `lease_lost` when it ran out: then this instance is over. */
  async beat(): Promise<void> {
    await this.store.write('beat', { instance: this.instance, ttlMs: this.#options.leaseTtlMs });
  }

  /** Writes an event about this instance. */
  async announce(
    draft: Extract<EventDraft, { type: `${'gateway' | 'platform'}:${string}` | 'work:set_aside' }>,
  ): Promise<void> {
    const context = this.commandContext();
    const event = { id: `${this.instance}:${draft.type}:${context.commandId}`, draft };
    await this.store.write('announceInstance', { context, event });
  }

  /** Finds dead instances and settles what they left. */
  async reap(): Promise<Reaped> {
    const total: Reaped = { lost: [], reaped: [], interrupted: [], released: [], more: false };
    const { instance, provenDead: isDead = isProvenDead } = this.#options;
    const provenDead = await findDead(this.store, instance, this.instance, isDead);
    if (provenDead === null) return total;
    for (let more = true; more; ) {
      const batch = await this.store.write('reap', { context: this.commandContext(), provenDead, limit: REAP_BATCH });
      for (const list of ['lost', 'reaped', 'interrupted', 'released'] as const) total[list].push(...batch[list]);
      // A batch that got nothing done met sessions that another process is settling right now.
      more = batch.more && batch.reaped.length + batch.interrupted.length + batch.released.length > 0;
    }
    return total;
  }

  /** Ends one batch of what is overdue. */
  expire(trigger: 'watcher' | 'startup'): Promise<WriteResult<'expire'>> {
    return this.store.write('expire', { context: this.commandContext(), limit: EXPIRE_BATCH, trigger });
  }

  /** Removes one batch of ended sessions, and says how many they were; 0 when there is nothing left to remove. */
  async prune(rule: PruneRule): Promise<number> {
    const context = this.commandContext();
    const { removed } = await this.store.write('pruneSessions', { context, rule, limit: PRUNE_BATCH });
    return removed.length;
  }

  /** Removes events that were kept long enough, a batch after a number; returns where to go on, null at the end. */
  async pruneEvents(olderThanMs: number, after: number): Promise<number | null> {
    const context = this.commandContext();
    const { next } = await this.store.write('pruneEvents', { context, olderThanMs, after, limit: PRUNE_EVENTS_BATCH });
    return next;
  }

  /**
   * Settles what the rows say this instance holds and it does not know of: sessions whose takeover it never learned of,
   * turns it began without learning of it or lost track of, and claims of queue lanes.
   */
  async reconcile(): Promise<number> {
    const { strays, claims } = await this.#findStrays();
    if (strays.length + claims.length === 0) return 0;
    const context = this.commandContext();
    const settled = await this.store.write('reconcile', { context, sessions: strays, claims });
    for (const id of settled.interrupted) this.holdings.drop(id);
    return strays.length + claims.length;
  }

  /** How much is running by the rows and in no process: held by one that is gone, or by this one without its knowing. */
  async countStrays(): Promise<number> {
    const instances = await this.store.read('listInstances', {});
    const gone = instances.filter(({ id, state, expired }) => id !== this.instance && (state === 'dead' || expired));
    const { strays, claims } = await this.#findStrays();
    return gone.reduce((sum, { owns }) => sum + owns, strays.length + claims.length);
  }

  async #findStrays(): Promise<{ strays: Stray[]; claims: LaneClaim[] }> {
    const rows = await this.store.read('heldBy', { instance: this.instance });
    const strays = await this.holdings.strays(rows.sessions);
    return { strays, claims: rows.claims.filter((claim) => !this.claims.knows(claim)) };
  }

  /** Leaves in order. Sessions still held are settled by another instance. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.store.write('stopInstance', { instance: this.instance });
    this.holdings.clear();
  }
}

/**
 * The instances whose death is proven, or null when there is nothing to reap at all: no proof, no lease that ran out,
 * nothing left of the dead. Reads only, so that every command can afford to look.
 */
export async function findDead(
  store: Store,
  host: HostFacts,
  self: string | null,
  provenDead: typeof isProvenDead = isProvenDead,
): Promise<string[] | null> {
  const instances = await store.read('listInstances', {});
  const others = instances.filter((instance) => instance.id !== self);
  // An SQLite file is used from one machine only, whatever its containers are called.
  const oneMachine = store.engine === 'sqlite';
  const proven = others.filter((other) => other.state === 'up' && provenDead(other, host, oneMachine));
  const leftovers = others.some((other) => (other.state === 'up' ? other.expired : other.owns > 0));
  return proven.length > 0 || leftovers ? proven.map((instance) => instance.id) : null;
}

/** True when this instance is over and the process must boot a new one. */
export function isLeaseLost(error: unknown): boolean {
  return hasCode(error, 'lease_lost');
}
