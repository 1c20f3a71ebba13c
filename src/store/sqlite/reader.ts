import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import { transactionNamed } from '../catalogue.ts';
import type { StoreClock } from '../clock.ts';
import { SqliteConnection } from './connection.ts';
import { wrapSqlite } from './errors.ts';
import { FileSignal } from './file-signal.ts';
import { contextOf, type Outcome, type Request } from './writer.ts';

/** Readers wait for nobody but a process that repairs the log of a dead one. */
const READER_WAIT_MS = 5000;
const NOT_OPEN = -1;

/** Reads beside the writer, each in a snapshot of its own. */
export class SqliteReader {
  readonly #path: string;
  readonly #waitMs: number;
  readonly #clock: StoreClock;
  readonly #signal: FileSignal;
  #connection: SqliteConnection | null = null;
  /** Of which opening of the file the connection is. */
  #opening = NOT_OPEN;
  rules: ResetRules;

  /** `waitMs` is how long to wait, without doing anything else, for a lock that another process holds. */
  constructor(
    path: string,
    clock: StoreClock,
    rules: ResetRules,
    { waitMs = READER_WAIT_MS, signal = new FileSignal() } = {},
  ) {
    this.#path = path;
    this.#waitMs = waitMs;
    this.#signal = signal;
    this.#clock = clock;
    this.rules = rules;
  }

  runBatch(requests: readonly Request[]): Outcome[] {
    return requests.map((request) => {
      const outcome = this.#runOne(request);
      // The writer began another log in the meantime: what was read may be of the old one.
      return this.#signal.openings === this.#opening || this.#opening === NOT_OPEN ? outcome : this.#runOne(request);
    });
  }

  close(): void {
    this.#connection?.close();
  }

  #runOne(request: Request): Outcome {
    const context = contextOf(this.#clock, this.rules);
    try {
      const connection = this.#connect();
      connection.exec('BEGIN');
      const value = connection.run(transactionNamed(request.name, context, request.args));
      return { ok: true, value, effects: context.effects };
    } catch (thrown) {
      const error = wrapSqlite(thrown, this.#path);
      // The next read opens the file anew.
      if (error.code === 'store_io') this.#opening = NOT_OPEN;
      return { ok: false, error, wrote: false };
    } finally {
      this.#leave();
    }
  }

  #connect(): SqliteConnection {
    if (this.#signal.replaced) {
      throw new MoiraiError('store_replaced', `${this.#path} is not the database that was opened`);
    }
    const { openings } = this.#signal;
    const before = this.#connection;
    if (before !== null && openings === this.#opening) return before;
    this.#connection = SqliteConnection.openReader(this.#path, this.#waitMs);
    this.#opening = openings;
    before?.close();
    return this.#connection;
  }

  #leave(): void {
    try {
      if (this.#connection?.inTransaction) this.#connection.exec('COMMIT');
    } catch {
      // Only a damaged file cannot end a read, and whoever reads next is told of it.
    }
  }
}
