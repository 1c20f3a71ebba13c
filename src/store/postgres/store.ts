import pg from 'pg';
import { MoiraiError } from '../../errors/moirai-error.ts';
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
import { assertSafe, connectionOptions, migrateServer, shownUrl } from './connection.ts';
import { isAway, wantsRetry, wrapPostgres } from './errors.ts';
import { Hints } from './hints.ts';
import { commit, runNew, ServerContext } from './transact.ts';

const MAX_CONNECTIONS = 16;
const MAX_ATTEMPTS = 12;

export interface PostgresOptions {
  /** Replaces the server's clock; for simulations only. */
  readonly clock?: StoreClock;
  readonly maxConnections?: number;
}

/** The store for more than one machine: any number of instances on one database. */
export class PostgresStore implements Store {
  readonly engine = 'postgres';
  readonly location: string;
  readonly #pool: pg.Pool;
  readonly #listeners = new CommitListeners();
  readonly #hints: Hints;
  readonly #clock: StoreClock | null;
  #rules: ResetRules;
  #closed = false;

  private constructor(url: string, rules: ResetRules, options: PostgresOptions) {
    this.location = shownUrl(url);
    this.#rules = rules;
    this.#clock = options.clock ?? null;
    this.#pool = new pg.Pool({ ...connectionOptions(url), max: options.maxConnections ?? MAX_CONNECTIONS });
    // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
    this.#pool.on('error', () => undefined);
    // So would one that breaks in the middle of a transaction; there the next statement tells, and all is tried again.
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
    this.#hints = new Hints(connectionOptions(url), (effects) => this.#listeners.tell(effects));
  }

  static async open(url: string, rules: ResetRules, options: PostgresOptions = {}): Promise<PostgresStore> {
    const store = new PostgresStore(url, rules, options);
    try {
      const client = await store.#pool.connect();
      try {
        await assertSafe(client);
        await migrateServer(client);
      } finally {
        client.release();
      }
    } catch (thrown) {
      await store.#pool.end();
      throw wrapPostgres(thrown, store.location);
    }
    return store;
  }

  async write<N extends WriteName>(name: N, args: WriteArgs<N>): Promise<WriteResult<N>> {
    const { value, effects } = await this.#transact(name, args);
    this.#listeners.tell(effects);
    this.#hints.send(effects);
    return value as WriteResult<N>;
  }

  async read<N extends ReadName>(name: N, args: ReadArgs<N>): Promise<ReadResult<N>> {
    const { value } = await this.#transact(name, args);
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
    await this.#pool.end();
  }

  /**
   * Runs a transaction until the server has taken or refused it. Conflicts are tried again; so are broken
   * connections, also when the commit's answer was lost: commands carry ids, and none applies twice.
   */
  async #transact(name: string, args: unknown): Promise<{ value: unknown; effects: Effects }> {
    if (this.#closed) throw new MoiraiError('store_closed', 'the store is closed');
    let inDoubt = false;
    for (let attempt = 1; ; attempt++) {
      const trial = await this.#try(name, args);
      if (trial.ok) return trial;
      inDoubt ||= trial.inDoubt;
      const again = wantsRetry(trial.thrown) || isAway(trial.thrown);
      if (!again || attempt >= MAX_ATTEMPTS || this.#closed) throw this.#failure(trial.thrown, inDoubt, name);
      await pause(Math.min(1000, 5 * 2 ** attempt) * (0.5 + Math.random()));
    }
  }

  #failure(thrown: unknown, inDoubt: boolean, name: string): MoiraiError {
    const error = wrapPostgres(thrown, this.location);
    if (!inDoubt) return error;
    // Whatever the repetition was refused for (a lease that ran out meanwhile, say), the first one may have been taken.
    return new MoiraiError('store_outcome_unknown', `${name}: the commit was never answered, then: ${error.message}`, {
      cause: thrown,
    });
  }

  async #try(name: string, args: unknown): Promise<Trial> {
    let client: pg.PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (thrown) {
      return { ok: false, thrown, inDoubt: false };
    }
    let committing = false;
    try {
      const context = new ServerContext(this.#rules, this.#clock);
      const outcome = await runNew(client, context, () => transactionNamed(name, context, args));
      committing = true;
      await commit(client, outcome);
      client.release();
      return { ok: true, value: outcome.value, effects: context.effects };
    } catch (thrown) {
      await giveBack(client, thrown);
      return { ok: false, thrown, inDoubt: committing && isAway(thrown) };
    }
  }
}

type Trial =
  | { readonly ok: true; readonly value: unknown; readonly effects: Effects }
  | { readonly ok: false; readonly thrown: unknown; readonly inDoubt: boolean };

/** Undoes the transaction and returns the connection, or throws the connection away when it is broken. */
async function giveBack(client: pg.PoolClient, thrown: unknown): Promise<void> {
  if (isAway(thrown)) {
    client.release(true);
    return;
  }
  try {
    await client.query('ROLLBACK');
    client.release();
  } catch {
    client.release(true); // Broken meanwhile; the server undoes what an ended connection left open.
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
