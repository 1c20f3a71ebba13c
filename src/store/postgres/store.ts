import type pg from 'pg';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import {
  type ReadArgs,
  type ReadName,
  type ReadResult,
  transactionNamed,
  type WriteArgs,
  type WriteName,
  type WriteResult,
} from '../catalogue.ts';
import type { StoreClock } from '../clock.ts';
import { CommitListeners } from '../commit-listeners.ts';
import type { Store } from '../port.ts';
import type { Effects } from '../transaction.ts';
import { assertSafe, connectionOptions, shownUrl } from './connection.ts';
import { Connections } from './connections.ts';
import { answeredWithin, DEADLINES, type Deadlines } from './deadlines.ts';
import {
  isAway,
  isStaleStatement,
  leavesCommitUnknown,
  suggestsOtherSchema,
  wantsRetry,
  wrapPostgres,
} from './errors.ts';
import { KeyGates } from './gate.ts';
import { Hints } from './hints.ts';
import { migrateServer, schemaVersion } from './migrate-server.ts';
import { forgetPrepared } from './pipeline.ts';
import { type Plan, planFor } from './plan.ts';
import { assertOwnConnection } from './pooler.ts';
import { commit, runNew, ServerContext } from './transact.ts';

/** After so many tries a statement that does not fit its tables will not begin to. */
const STALE_TRIES = 3;
/** With a migration of a large store; each part of it has deadlines of its own. */
const OPENING_MS = 2 * 3_600_000;

export interface PostgresOptions {
  /** Replaces the server's clock; for simulations only. */
  readonly clock?: StoreClock;
  readonly maxConnections?: number;
  readonly deadlines?: Partial<Deadlines>;
  /** Hears of what went wrong and stopped nothing. */
  readonly onProblem?: (message: string, details: Readonly<Record<string, unknown>>) => void;
}

/** The store for more than one machine: any number of instances on one database. */
export class PostgresStore implements Store {
  readonly engine = 'postgres';
  readonly location: string;
  readonly #connections: Connections;
  readonly #conversations = new KeyGates();
  readonly #listeners = new CommitListeners();
  readonly #hints: Hints;
  readonly #clock: StoreClock | null;
  readonly #deadlines: Deadlines;
  readonly #connecting: pg.ClientConfig;
  #rules: ResetRules;
  #closed = false;

  private constructor(url: string, rules: ResetRules, options: PostgresOptions) {
    this.location = shownUrl(url);
    this.#rules = rules;
    this.#clock = options.clock ?? null;
    this.#deadlines = { ...DEADLINES, ...options.deadlines };
    this.#connecting = connectionOptions(url, this.#deadlines);
    this.#connections = new Connections(this.#connecting, this.#deadlines, options.maxConnections);
    this.#hints = new Hints(this.#connecting, this.#deadlines, {
      heard: (effects) => this.#listeners.tell(effects),
      problem: options.onProblem ?? (() => undefined),
    });
  }

  static async open(url: string, rules: ResetRules, options: PostgresOptions = {}): Promise<PostgresStore> {
    const store = new PostgresStore(url, rules, options);
    try {
      await store.#prepare();
    } catch (thrown) {
      await store.#connections.close();
      throw wrapPostgres(thrown, store.location);
    }
    return store;
  }

  async write<N extends WriteName>(name: N, args: WriteArgs<N>): Promise<WriteResult<N>> {
    const { value, effects } = await this.#inOrder(planFor('write', name, this.#deadlines), args);
    this.#listeners.tell(effects);
    this.#hints.send(effects);
    return value as WriteResult<N>;
  }

  async read<N extends ReadName>(name: N, args: ReadArgs<N>): Promise<ReadResult<N>> {
    const { value } = await this.#transact(planFor('read', name, this.#deadlines), args);
    return value as ReadResult<N>;
  }

  /** The first listener also starts to hear what other instances commit. */
  onCommit(listener: (effects: Effects) => void): () => void {
    this.#hints.listen();
    return this.#listeners.add(listener);
  }

  useRules(rules: ResetRules): void {
    this.#rules = rules;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#hints.close();
    await this.#connections.close();
  }

  async #prepare(): Promise<void> {
    const opening = planFor('write', 'bootInstance', this.#deadlines);
    await this.#connections.use({ ...opening, tryMs: OPENING_MS }, async (client) => {
      await answeredWithin(this.#deadlines.tryMs, client, () => assertSafe(client));
      await assertOwnConnection(client, this.#connecting, this.#deadlines);
      await migrateServer(client, this.#deadlines);
    });
  }

  /** Writes of one conversation wait for each other here, where they hold no connection. */
  async #inOrder(plan: Plan, args: unknown): Promise<Committed> {
    const key = conversationOf(args);
    if (key === null) return this.#transact(plan, args);
    const began = performance.now();
    const waitMs = plan.totalMs - plan.leastMs;
    await this.#conversations.enter(key, waitMs, () => lockedFor(waitMs));
    try {
      const waited = performance.now() - began;
      return await this.#transact({ ...plan, totalMs: plan.totalMs - waited }, args);
    } finally {
      this.#conversations.leave(key);
    }
  }

  /**
   * Runs a transaction until the server has taken or refused it, or its time is over. Conflicts are tried again; so are
   * broken connections, also when the commit's answer was lost: commands carry ids, and none applies twice.
   */
  async #transact(plan: Plan, args: unknown): Promise<Committed> {
    const until = performance.now() + plan.totalMs;
    let unknown = false;
    let stale = 0;
    for (let attempt = 1; ; attempt++) {
      if (this.#closed) throw await this.#failure(plan, closedError(), unknown);
      const totalMs = until - performance.now();
      const trial = await this.#try({ ...plan, totalMs, tryMs: Math.min(plan.tryMs, totalMs) }, args);
      if (trial.ok) return trial;
      const { thrown } = trial;
      unknown ||= trial.unknown;
      const reprepare = isStaleStatement(thrown) && ++stale < STALE_TRIES;
      if (reprepare) forgetPrepared();
      const again = reprepare || wantsRetry(thrown) || isAway(thrown);
      const pauseMs = reprepare ? 0 : Math.min(1000, 5 * 2 ** attempt) * (0.5 + Math.random());
      const left = until - performance.now() - pauseMs;
      if (!again || left < plan.leastMs || this.#closed) throw await this.#failure(plan, thrown, unknown);
      await pause(pauseMs);
    }
  }

  async #try(plan: Plan, args: unknown): Promise<Trial> {
    let committing = false;
    try {
      const committed = await this.#connections.use(plan, async (client) => {
        const context = new ServerContext(plan.kind === 'write', this.#rules, this.#clock);
        const make = () => transactionNamed(plan.name, context, args);
        const outcome = await runNew(client, context, make, plan.settings);
        committing = plan.kind === 'write';
        await commit(client, outcome);
        return { value: outcome.value, effects: context.effects };
      });
      return { ok: true, ...committed };
    } catch (thrown) {
      return { ok: false, thrown, unknown: committing && leavesCommitUnknown(thrown) };
    }
  }

  async #failure({ name }: Plan, thrown: unknown, unknown: boolean): Promise<MoiraiError> {
    const error = wrapPostgres(thrown, this.location);
    // Whatever the repetition was refused for (a lease that ran out meanwhile, say), the first one may have been taken.
    if (unknown) {
      const message = `${name}: the commit was never answered, then: ${error.message}`;
      return new MoiraiError('store_outcome_unknown', message, { cause: thrown });
    }
    return suggestsOtherSchema(thrown) ? this.#newerOr(error) : error;
  }

  /** A newer program may have changed the tables while this store was open: then that is what has to be told. */
  async #newerOr(error: MoiraiError): Promise<MoiraiError> {
    const plan = planFor('read', 'lastSeq', this.#deadlines);
    return this.#connections.use(plan, schemaVersion).then(
      () => error,
      (thrown: unknown) => (hasCode(thrown, 'store_newer') ? thrown : error),
    );
  }
}

interface Committed {
  readonly value: unknown;
  readonly effects: Effects;
}

type Trial =
  | ({ readonly ok: true } & Committed)
  /** `unknown`: it may have been done all the same. */
  | { readonly ok: false; readonly thrown: unknown; readonly unknown: boolean };

/** What a write excludes others from: a conversation by its key, or by its session where only that is known. */
function conversationOf(args: unknown): string | null {
  const { conversation, sessionId } = args as { conversation?: { key: string } | null; sessionId?: string };
  return conversation?.key ?? sessionId ?? null;
}

function closedError(): MoiraiError {
  return new MoiraiError('store_closed', 'the store is closed');
}

function lockedFor(ms: number): MoiraiError {
  return new MoiraiError('store_locked', `other writes of the same conversation were not over within ${ms} ms`);
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
