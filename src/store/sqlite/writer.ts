import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import { transactionNamed, type WriteName } from '../catalogue.ts';
import type { StoreClock } from '../clock.ts';
import { refuseNewer } from '../migrations/migrations.ts';
import { type Effects, noEffects, type TxContext } from '../transaction.ts';
import { SqliteConnection } from './connection.ts';
import { DatabaseFile, type FileVerdict } from './database-file.ts';
import { sqliteDialect } from './dialect.ts';
import { endsTransaction, wrapSqlite } from './errors.ts';
import { FileSignal } from './file-signal.ts';
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

/** How far a batch has come. */
type Progress = 'open' | 'committing' | 'committed';

/** What has to be done before anything can be written again, with what everybody is told until then. */
interface Trouble {
  /** `reopen`: only a fresh look at the log knows the truth. `replaced`: the right file has to come back. */
  readonly kind: 'reopen' | 'replaced' | 'final';
  readonly error: MoiraiError;
}

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
  readonly #path: string;
  readonly #turnstile: Turnstile;
  readonly #clock: StoreClock;
  readonly #signal: FileSignal;
  #connection: SqliteConnection;
  #file: DatabaseFile;
  #othersCommits: number;
  #trouble: Trouble | null = null;

  constructor(path: string, clock: StoreClock, rules: ResetRules, signal = new FileSignal()) {
    this.#path = path;
    this.#connection = SqliteConnection.openWriter(path);
    this.#file = new DatabaseFile(path, () => this.#connection.marks);
    this.#othersCommits = this.#connection.othersCommits;
    this.#turnstile = new Turnstile(path);
    this.#clock = clock;
    this.#signal = signal;
    this.rules = rules;
  }

  /** Runs requests in one transaction and answers each; returns only after the commit. */
  runBatch(requests: readonly Request[]): Outcome[] {
    if (this.#trouble !== null) this.#recover(this.#trouble);
    if (this.#trouble !== null) return this.#refuseAll(requests, this.#trouble.error);
    try {
      this.#connection.synced = !requests.every(({ name }) => REPEATABLE.has(name));
      this.#turnstile.enter(() => this.#connection.exec('BEGIN IMMEDIATE'));
    } catch (thrown) {
      return this.#abandon(requests, thrown);
    }
    let progress: Progress = 'open';
    let outcomes: Outcome[];
    try {
      this.#connection.run(refuseNewer());
      outcomes = requests.map((request) => this.#run(request));
      const failedHalfway = outcomes.some((outcome) => !outcome.ok && outcome.wrote);
      if (!failedHalfway && requests.some(({ name }) => name === 'beat')) this.#countHeartbeat();
      if (!failedHalfway) progress = 'committing';
      this.#connection.exec(failedHalfway ? 'ROLLBACK' : 'COMMIT');
      if (!failedHalfway) {
        progress = 'committed';
        if (requests.some(({ name }) => name === ERASING)) this.#connection.emptyLog();
        return this.#verify(outcomes);
      }
    } catch (thrown) {
      return this.#abandon(requests, thrown, progress);
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
      const error = wrapSqlite(thrown, this.#path);
      if (endsTransaction(error) || !this.#connection.inTransaction) throw error;
      return { ok: false, error, wrote: this.#connection.wrote };
    }
  }

  #countHeartbeat(): void {
    this.#connection.heartbeats = this.#file.next(this.#connection.marks.heartbeats, this.#clock.now());
  }

  /** After the commit, which covers the time before it as well: what went into another file is not known to be kept. */
  #verify(outcomes: Outcome[]): Outcome[] {
    const verdict = this.#file.check();
    if (verdict === 'same' || (verdict === 'log' && this.#rescueLog())) {
      this.#othersCommits = this.#connection.othersCommits;
      return outcomes;
    }
    const error = this.#noteReplaced(verdict);
    const unknown = unknownOutcome(`${error.message}; what was just written may be lost with it`, error);
    return outcomes.map((outcome) => (outcome.ok ? { ok: false, error: unknown, wrote: true } : outcome));
  }

  #noteReplaced(verdict: FileVerdict): MoiraiError {
    const what = verdict === 'log' ? 'its log was removed' : 'the file was moved, removed, or written over';
    const error = new MoiraiError('store_replaced', `${this.#path} is not the database that was opened: ${what}`, {
      details: { path: this.#path },
    });
    this.#trouble = { kind: 'replaced', error };
    this.#signal.replaced = true;
    return error;
  }

  /** The open log is the only copy of what was committed last: it goes into the database, and a new log begins. */
  #rescueLog(): boolean {
    try {
      if (!this.#connection.emptyLog() || this.#file.check() !== 'log') return false;
      this.#reopen();
      return true;
    } catch {
      return false; // Then it stays in trouble, and the next request tries again.
    }
  }

  #recover(trouble: Trouble): void {
    if (trouble.kind === 'final') return;
    try {
      const recovered = trouble.kind === 'reopen' ? this.#startFresh() : this.#isBack();
      if (!recovered) return;
      this.#trouble = null;
      this.#signal.replaced = false;
    } catch (thrown) {
      this.#trouble = { kind: trouble.kind, error: wrapSqlite(thrown, this.#path) };
    }
  }

  /**
   * After a failed sync the kernel may have dropped pages that it was given. So all of the log goes into the database,
   * which is synced, before anything new is written behind it.
   */
  #startFresh(): boolean {
    // Whatever is at the path now was not written by this process.
    if (this.#file.check() === 'replaced') {
      this.#noteReplaced('replaced');
      return false;
    }
    this.#reopen();
    return this.#connection.emptyLog();
  }

  /** The right files are there again, and nobody else wrote in the meantime: then nothing has happened to them. */
  #isBack(): boolean {
    const verdict = this.#file.check();
    if (verdict === 'log') return this.#rescueLog();
    return verdict === 'same' && this.#connection.othersCommits === this.#othersCommits;
  }

  #reopen(): void {
    const before = this.#connection;
    // First the new one: the last connection that is closed removes the log.
    this.#connection = SqliteConnection.openWriter(this.#path);
    this.#file = new DatabaseFile(this.#path, () => this.#connection.marks);
    this.#othersCommits = this.#connection.othersCommits;
    this.#signal.opened();
    before.close();
  }

  #abandon(requests: readonly Request[], thrown: unknown, progress: Progress = 'open'): Outcome[] {
    const found = wrapSqlite(thrown, this.#path);
    // Of a file that was written over, pages of two databases are read: that is no damage of the one that was open.
    const isOther = found.code === 'store_corrupt' && this.#file.check() === 'replaced';
    const error = isOther ? this.#noteReplaced('replaced') : found;
    if (error.code === 'store_io' || progress === 'committed') this.#trouble = { kind: 'reopen', error };
    if (error.code === 'store_corrupt') this.#trouble = { kind: 'final', error };
    try {
      if (this.#connection.inTransaction) this.#connection.exec('ROLLBACK');
    } catch (failed) {
      this.#trouble = { kind: 'reopen', error: wrapSqlite(failed, this.#path) };
    }
    // What was written before the disk failed may be found after a restart; a full disk took none of it. What went wrong
    // only after the commit, such as a file that may not be looked at any more, undoes nothing.
    const isUnknown = progress === 'committed' || (progress === 'committing' && error.code === 'store_io');
    return this.#refuseAll(requests, isUnknown ? unknownOutcome(error.message, error) : error);
  }

  #refuseAll(requests: readonly Request[], thrown: unknown): Outcome[] {
    const error = wrapSqlite(thrown, this.#path);
    return requests.map(() => ({ ok: false, error, wrote: false }));
  }
}

function unknownOutcome(message: string, cause: MoiraiError): MoiraiError {
  return new MoiraiError('store_outcome_unknown', message, { cause, details: { code: cause.code } });
}

/** What a transaction knows when it begins. */
export function contextOf(clock: StoreClock, rules: ResetRules): TxContext {
  return { dialect: sqliteDialect, now: clock.now(), leaseNow: clock.lease(), rules, effects: noEffects() };
}
