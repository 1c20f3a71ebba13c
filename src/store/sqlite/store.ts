import { resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import type { StoreClock } from '../clock.ts';
import { CommitListeners } from '../commit-listeners.ts';
import type { Store } from '../port.ts';
import type { Effects } from '../transaction.ts';
import type { ReadArgs, ReadName, ReadResult, WriteArgs, WriteName, WriteResult } from '../transactions/index.ts';
import type { Answer, FromWorker, ToWorker, WorkerTask } from './worker.ts';
import { type Outcome, SqliteReader, SqliteWriter } from './writer.ts';

/** The embedded store: one writer thread and, once somebody reads, one reader thread. */
export class SqliteStore implements Store {
  readonly engine = 'sqlite';
  readonly location: string;
  readonly #listeners = new CommitListeners();
  readonly #writer: StoreThread;
  #reader: Promise<StoreThread> | null = null;
  #rules: ResetRules;

  private constructor(path: string, writer: StoreThread, rules: ResetRules) {
    this.location = path;
    this.#writer = writer;
    this.#rules = rules;
    writer.onEffects = (effects) => this.#listeners.tell(effects);
  }

  static async open(file: string, rules: ResetRules): Promise<SqliteStore> {
    const path = resolve(file);
    const writer = await StoreThread.start({ role: 'writer', path, rules });
    return new SqliteStore(path, writer, rules);
  }

  write<N extends WriteName>(name: N, args: WriteArgs<N>): Promise<WriteResult<N>> {
    return this.#writer.request(name, args) as Promise<WriteResult<N>>;
  }

  async read<N extends ReadName>(name: N, args: ReadArgs<N>): Promise<ReadResult<N>> {
    this.#reader ??= StoreThread.start({ role: 'reader', path: this.location, rules: this.#rules });
    const reader = await this.#reader;
    return (await reader.request(name, args)) as ReadResult<N>;
  }

  onCommit(listener: (effects: Effects) => void): () => void {
    return this.#listeners.add(listener);
  }

  useRules(rules: ResetRules): void {
    this.#rules = rules;
    this.#writer.post({ type: 'rules', rules });
    this.#reader?.then(
      (reader) => reader.post({ type: 'rules', rules }),
      () => undefined, // Whoever reads gets the reason the reader did not start.
    );
  }

  async close(): Promise<void> {
    const reader = await this.#reader?.catch(() => null);
    await reader?.close();
    await this.#writer.close();
  }
}

/** The other end of a worker thread: requests out, answers in. */
class StoreThread {
  onEffects: (effects: Effects) => void = () => undefined;
  readonly #worker: Worker;
  readonly #bell = new Int32Array(new SharedArrayBuffer(4));
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: MoiraiError): void }>();
  readonly #exited: Promise<void>;
  #nextId = 1;
  #closed = false;

  private constructor(task: Omit<WorkerTask, 'bell'>) {
    const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js';
    const workerData: WorkerTask = { ...task, bell: this.#bell };
    this.#worker = new Worker(new URL(file, import.meta.url), { workerData, name: `store-${task.role}` });
    this.#exited = new Promise((done) => this.#worker.once('exit', () => done()));
  }

  static start(task: Omit<WorkerTask, 'bell'>): Promise<StoreThread> {
    const thread = new StoreThread(task);
    return new Promise((started, failed) => {
      thread.#worker.on('message', (message: FromWorker) => {
        if (message.type === 'ready') {
          // A waiting request keeps the process alive; an idle store does not.
          thread.#worker.unref();
          started(thread);
        } else if (message.type === 'failed') failed(MoiraiError.from(message.error));
        else if (message.type === 'answers') thread.#settle(message.answers);
      });
      thread.#worker.on('error', (thrown) => {
        const error = MoiraiError.wrap(thrown);
        failed(error);
        thread.#fail(error);
      });
      thread.#worker.on('exit', () => thread.#fail(closedError()));
    });
  }

  request(name: string, args: unknown): Promise<unknown> {
    if (this.#closed) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      if (this.#waiting.size === 1) this.#worker.ref();
      this.post({ type: 'request', id, name, args });
    });
  }

  post(message: ToWorker): void {
    this.#worker.postMessage(message);
    Atomics.add(this.#bell, 0, 1);
    Atomics.notify(this.#bell, 0);
  }

  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#worker.ref();
      this.post({ type: 'close' });
    }
    await this.#exited;
  }

  #settle(answers: readonly Answer[]): void {
    for (const answer of answers) {
      const waiter = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if (answer.ok) {
        if (answer.effects !== null) this.onEffects(answer.effects);
        waiter?.resolve(answer.value);
      } else {
        waiter?.reject(MoiraiError.from(answer.error));
      }
    }
    if (this.#waiting.size === 0 && !this.#closed) this.#worker.unref();
  }

  #fail(error: MoiraiError): void {
    this.#closed = true;
    for (const waiter of this.#waiting.values()) waiter.reject(error);
    this.#waiting.clear();
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
    this.#writer = new SqliteWriter(path, clock, rules);
    this.#reader = new SqliteReader(path, clock, rules);
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

function closedError(): MoiraiError {
  return new MoiraiError('store_closed', 'the store is closed');
}
