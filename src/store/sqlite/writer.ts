import type { MoiraiError } from '../../errors/moirai-error.ts';
import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import { transactionNamed, type WriteName } from '../catalogue.ts';
import type { StoreClock } from '../clock.ts';
import { refuseNewer } from '../migrations/migrations.ts';
import { type Effects, noEffects, type TxContext } from '../transaction.ts';
import { SqliteConnection } from './connection.ts';
import { sqliteDialect } from './dialect.ts';
import { endsTransaction, wrapSqlite } from './errors.ts';
import { Turnstile } from './turnstile.ts';

export interface Request {
  readonly name: string;
  readonly args: unknown;
}

export type Outcome =
  | { readonly ok: true; readonly value: unknown; readonly effects: Effects }
  | {
      readonly ok: false;
      readonly error: MoiraiError;
      /** It had changed something before it failed. */
      readonly wrote: boolean;
    };

/**
 * What a power cut may take back: whoever claimed is gone with it, and an event whose acknowledgement is lost comes
 * again, as it would have if the power had gone a moment earlier. Such a commit does not wait for the disk.
 */
const REPEATABLE: ReadonlySet<string> = new Set<WriteName>(['claimEvents', 'ackEvents']);

/** What was removed is not to stay readable: its last step also empties the write-ahead log. */
const ERASING: WriteName = 'cleanIndex';

/**
 * The one writer of a process: takes requests in batches and makes each batch one commit. Nothing is answered before
 * the commit is on the disk, unless it holds nothing but what may be repeated.
 *
 * A request that fails leaves the others alone. Nearly always it fails before it has changed anything. Otherwise the
 * batch is undone and its requests run one by one: savepoints would do that without a second run, but they copy each
 * page that any request changes.
 */
export class SqliteWriter {
  rules: ResetRules;
  readonly #connection: SqliteConnection;
  readonly #turnstile: Turnstile;
  readonly #clock: StoreClock;
  #broken: MoiraiError | null = null;

  constructor(path: string, clock: StoreClock, rules: ResetRules) {
    this.#connection = SqliteConnection.openWriter(path);
    this.#turnstile = new Turnstile(path);
    this.#clock = clock;
    this.rules = rules;
  }

  /** Runs requests in one transaction and answers each; returns only after the commit. */
  runBatch(requests: readonly Request[]): Outcome[] {
    if (this.#broken !== null) return this.#refuseAll(requests, this.#broken);
    try {
      this.#connection.synced = !requests.every(({ name }) => REPEATABLE.has(name));
      this.#turnstile.enter(() => this.#connection.exec('BEGIN IMMEDIATE'));
    } catch (thrown) {
      return this.#refuseAll(requests, thrown);
    }
    let outcomes: Outcome[];
    try {
      this.#connection.run(refuseNewer());
      outcomes = requests.map((request) => this.#run(request));
      const failedHalfway = outcomes.some((outcome) => !outcome.ok && outcome.wrote);
      this.#connection.exec(failedHalfway ? 'ROLLBACK' : 'COMMIT');
      if (!failedHalfway) {
        if (requests.some(({ name }) => name === ERASING)) this.#emptyLog();
        return outcomes;
      }
    } catch (thrown) {
      return this.#abandon(requests, thrown);
    }
    return requests.length === 1 ? outcomes : requests.flatMap((request) => this.runBatch([request]));
  }

  close(): void {
    this.#turnstile.close();
    this.#connection.close();
  }

  #run(request: Request): Outcome {
    const context = contextOf(this.#clock, this.rules);
    try {
      const value = this.#connection.run(transactionNamed(request.name, context, request.args));
      return { ok: true, value, effects: context.effects };
    } catch (thrown) {
      const error = wrapSqlite(thrown, this.#connection.path);
      if (endsTransaction(error) || !this.#connection.inTransaction) throw error;
      return { ok: false, error, wrote: this.#connection.wrote };
    }
  }

  /** As far as no reader is in the way: then the log is written over in its turn. */
  #emptyLog(): void {
    this.#connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  #abandon(requests: readonly Request[], thrown: unknown): Outcome[] {
    const error = wrapSqlite(thrown, this.#connection.path);
    // After a failed sync the kernel may have dropped the pages: only a fresh start from the log knows the truth.
    if (error.code === 'store_io' || error.code === 'store_corrupt') this.#broken = error;
    try {
      if (this.#connection.inTransaction) this.#connection.exec('ROLLBACK');
    } catch (failed) {
      this.#broken = wrapSqlite(failed, this.#connection.path);
    }
    return this.#refuseAll(requests, error);
  }

  #refuseAll(requests: readonly Request[], thrown: unknown): Outcome[] {
    const error = wrapSqlite(thrown, this.#connection.path);
    return requests.map(() => ({ ok: false, error, wrote: false }));
  }
}

/** Readers wait for nobody but a process that repairs the log of a dead one. */
const READER_WAIT_MS = 5000;

/** Reads beside the writer, each in a snapshot of its own. */
export class SqliteReader {
  readonly #connection: SqliteConnection;
  readonly #clock: StoreClock;
  rules: ResetRules;

  /** `waitMs` is how long to wait, without doing anything else, for a lock that another process holds. */
  constructor(path: string, clock: StoreClock, rules: ResetRules, { waitMs = READER_WAIT_MS } = {}) {
    this.#connection = SqliteConnection.openReader(path, waitMs);
    this.#clock = clock;
    this.rules = rules;
  }

  runBatch(requests: readonly Request[]): Outcome[] {
    return requests.map((request) => this.#runOne(request));
  }

  close(): void {
    this.#connection.close();
  }

  #runOne(request: Request): Outcome {
    const context = contextOf(this.#clock, this.rules);
    try {
      this.#connection.exec('BEGIN');
      const value = this.#connection.run(transactionNamed(request.name, context, request.args));
      return { ok: true, value, effects: context.effects };
    } catch (thrown) {
      return { ok: false, error: wrapSqlite(thrown, this.#connection.path), wrote: false };
    } finally {
      this.#leave();
    }
  }

  #leave(): void {
    try {
      if (this.#connection.inTransaction) this.#connection.exec('COMMIT');
    } catch {
      // Only a damaged file cannot end a read, and whoever reads next is told of it.
    }
  }
}

function contextOf(clock: StoreClock, rules: ResetRules): TxContext {
  return { dialect: sqliteDialect, now: clock.now(), leaseNow: clock.lease(), rules, effects: noEffects() };
}
