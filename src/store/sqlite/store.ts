import { resolve } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import type { ReadArgs, ReadName, ReadResult, WriteArgs, WriteName, WriteResult } from '../catalogue.ts';
import type { StoreClock } from '../clock.ts';
import { CommitListeners } from '../commit-listeners.ts';
import type { Store } from '../port.ts';
import type { Effects } from '../transaction.ts';
import { FileSignal } from './file-signal.ts';
import { NearReads } from './near-reads.ts';
import { SqliteReader } from './reader.ts';
import { closedError, StoreThread } from './thread.ts';
import { type Outcome, SqliteWriter } from './writer.ts';

/** Reads that are answered on the caller's thread before everything else gets its turn. */
const MOST_AT_ONCE = 32;

/** The embedded store: one writer thread and, once somebody reads much, one reader thread. */
export class SqliteStore implements Store {
  readonly engine = 'sqlite';
  readonly location: string;
  readonly #listeners = new CommitListeners();
  readonly #signal: FileSignal;
  #writer: StoreThread;
  /** While another writer is being started in the place of one that died. */
  #nextWriter: Promise<StoreThread> | null = null;
  #reader: Promise<StoreThread> | null = null;
  readonly #near: NearReads;
  #rules: ResetRules;
  #closed = false;
  #nearReads = 0;

  private constructor(path: string, writer: StoreThread, rules: ResetRules, signal: FileSignal) {
    this.location = path;
    this.#writer = writer;
    this.#rules = rules;
    this.#signal = signal;
    this.#near = new NearReads(path, rules, () => performance.now(), signal);
    writer.onEffects = (effects) => this.#listeners.tell(effects);
  }

  static async open(file: string, rules: ResetRules): Promise<SqliteStore> {
    const path = resolve(file);
    const signal = new FileSignal();
    const writer = await StoreThread.start({ role: 'writer', path, rules, signal: signal.cells });
    return new SqliteStore(path, writer, rules, signal);
  }

  write<N extends WriteName>(name: N, args: WriteArgs<N>): Promise<WriteResult<N>> {
    const writing = this.#writer.dead ? this.#writeAnew(name, args) : this.#writer.request(name, args);
    return writing as Promise<WriteResult<N>>;
  }

  async #writeAnew(name: WriteName, args: unknown): Promise<unknown> {
    if (this.#closed) throw closedError();
    this.#nextWriter ??= this.#replaceWriter().finally(() => {
      this.#nextWriter = null;
    });
    return (await this.#nextWriter).request(name, args);
  }

  async #replaceWriter(): Promise<StoreThread> {
    const writer = await this.#startThread('writer');
    writer.onEffects = (effects) => this.#listeners.tell(effects);
    this.#writer = writer;
    return writer;
  }

  async #livingReader(): Promise<StoreThread> {
    const starting = this.#reader ?? this.#startThread('reader');
    this.#reader = starting;
    const reader = await starting.catch((thrown: unknown) => {
      this.#forgetReader(starting);
      throw thrown;
    });
    if (!reader.dead) return reader;
    this.#forgetReader(starting);
    if (this.#closed) throw closedError();
    return this.#livingReader();
  }

  /** One that did not start, or died over what it was asked, is no reason to refuse the next request. */
  #forgetReader(reader: Promise<StoreThread>): void {
    if (this.#reader === reader) this.#reader = null;
  }

  #startThread(role: 'writer' | 'reader'): Promise<StoreThread> {
    return StoreThread.start({ role, path: this.location, rules: this.#rules, signal: this.#signal.cells });
  }

  async read<N extends ReadName>(name: N, args: ReadArgs<N>): Promise<ReadResult<N>> {
    if (this.#closed) throw closedError();
    if (++this.#nearReads > MOST_AT_ONCE) await this.#breath();
    const near = this.#near.read(name, args);
    if (near !== null) return unwrap(near) as ReadResult<N>;
    const reader = await this.#livingReader();
    return (await reader.request(name, args)) as ReadResult<N>;
  }

  /** Whoever reads in a loop would never let anything else happen: a read that is answered at once is no wait. */
  async #breath(): Promise<void> {
    this.#nearReads = 0;
    await new Promise((resume) => setImmediate(resume));
  }

  onCommit(listener: (effects: Effects) => void): () => void {
    return this.#listeners.add(listener);
  }

  useRules(rules: ResetRules): void {
    this.#rules = rules;
    this.#near.rules = rules;
    if (!this.#writer.dead) this.#writer.post({ type: 'rules', rules });
    this.#reader?.then(
      (reader) => reader.post({ type: 'rules', rules }),
      () => undefined, // Whoever reads gets the reason the reader did not start.
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#near.close();
    const reader = await this.#reader?.catch(() => null);
    await reader?.close();
    await this.#nextWriter?.catch(() => undefined);
    await this.#writer.close();
  }
}

/**
 * The same store without threads, on an injected clock: for simulations, where every step must be repeatable, and for
 * commands that are over before a thread has started.
 */
export class InlineSqliteStore implements Store {
  readonly engine = 'sqlite';
  readonly location: string;
  readonly #listeners = new CommitListeners();
  readonly #writer: SqliteWriter;
  readonly #reader: SqliteReader;
  #closed = false;

  constructor(path: string, clock: StoreClock, rules: ResetRules) {
    this.location = path;
    const signal = new FileSignal();
    this.#writer = new SqliteWriter(path, clock, rules, signal);
    this.#reader = new SqliteReader(path, clock, rules, { signal });
  }

  async write<N extends WriteName>(name: N, args: WriteArgs<N>): Promise<WriteResult<N>> {
    if (this.#closed) throw closedError();
    const [outcome] = this.#writer.runBatch([{ name, args }]);
    const value = unwrap(outcome);
    if (outcome?.ok) this.#listeners.tell(outcome.effects);
    return value as WriteResult<N>;
  }

  async read<N extends ReadName>(name: N, args: ReadArgs<N>): Promise<ReadResult<N>> {
    if (this.#closed) throw closedError();
    const [outcome] = this.#reader.runBatch([{ name, args }]);
    return unwrap(outcome) as ReadResult<N>;
  }

  onCommit(listener: (effects: Effects) => void): () => void {
    return this.#listeners.add(listener);
  }

  useRules(rules: ResetRules): void {
    this.#writer.rules = rules;
    this.#reader.rules = rules;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.close();
    this.#writer.close();
  }
}

function unwrap(outcome: Outcome | undefined): unknown {
  if (outcome === undefined) throw new MoiraiError('internal', 'a request was left without an outcome');
  if (!outcome.ok) throw outcome.error;
  return outcome.value;
}
