import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Effects } from '../transaction.ts';
import type { Answer, FromWorker, ToWorker, WorkerTask } from './worker.ts';

/** A store thread keeps nothing between requests: what it leaves behind is collected early, not when there is a lot. */
const YOUNG_MB = 8;

/** The other end of a worker thread: requests out, answers in. */
export class StoreThread {
  onEffects: (effects: Effects) => void = () => undefined;
  readonly #worker: Worker;
  readonly #wakeCounter = new Int32Array(new SharedArrayBuffer(4));
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: MoiraiError): void }>();
  readonly #exited: Promise<void>;
  readonly #role: WorkerTask['role'];
  #nextId = 1;
  #closed = false;
  #dead = false;

  private constructor(task: Omit<WorkerTask, 'wakeCounter'>) {
    this.#role = task.role;
    const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js';
    const workerData: WorkerTask = { ...task, wakeCounter: this.#wakeCounter };
    this.#worker = new Worker(new URL(file, import.meta.url), {
      workerData,
      name: `store-${task.role}`,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
      env: compileCache(),
    });
    this.#exited = new Promise((done) => this.#worker.once('exit', () => done()));
  }

  static start(task: Omit<WorkerTask, 'wakeCounter'>): Promise<StoreThread> {
    const thread = new StoreThread(task);
    return new Promise((started, failed) => {
      thread.#worker.on('message', (text: string) => {
        const message = JSON.parse(text) as FromWorker;
        if (message.type === 'ready') {
          // A waiting request keeps the process alive; an idle store does not.
          thread.#worker.unref();
          started(thread);
        } else if (message.type === 'failed') failed(MoiraiError.from(message.error));
        else thread.#settle(message.answers);
      });
      thread.#worker.on('error', (thrown) => {
        failed(MoiraiError.wrap(thrown));
        thread.#die(thrown);
      });
      thread.#worker.on('exit', (code) => {
        failed(new MoiraiError('store_thread_died', `a thread of the store ended with ${code}`));
        thread.#die(new TypeError(`it ended with ${code}`));
      });
    });
  }

  /** It ended without being told to: whoever needs it starts another one. */
  get dead(): boolean {
    return this.#dead;
  }

  request(name: string, args: unknown): Promise<unknown> {
    if (this.#closed || this.#dead) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      // Each at once, not all of a tick together: the worker begins with the first while the others are being made.
      this.post({ type: 'request', id, name, args });
      this.#waiting.set(id, { resolve, reject });
      if (this.#waiting.size === 1) this.#worker.ref();
    });
  }

  post(message: ToWorker): void {
    this.#worker.postMessage(JSON.stringify(message));
    Atomics.add(this.#wakeCounter, 0, 1);
    Atomics.notify(this.#wakeCounter, 0);
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
        const { effects } = answer;
        if (effects !== null) this.onEffects({ ...effects, queues: new Set(effects.queues) });
        waiter?.resolve(answer.value);
      } else {
        waiter?.reject(MoiraiError.from(answer.error));
      }
    }
    if (this.#waiting.size === 0 && !this.#closed) this.#worker.unref();
  }

  #die(cause: unknown): void {
    if (this.#dead) return;
    this.#dead = !this.#closed;
    const error = this.#closed ? closedError() : diedError(this.#role, cause);
    for (const waiter of this.#waiting.values()) waiter.reject(error);
    this.#waiting.clear();
  }
}

/** A thread uses the cache of compiled code only when its own environment names it; it needs nothing else of one. */
function compileCache(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}

/** What it was writing may be there; what it was reading was not read. */
function diedError(role: WorkerTask['role'], cause: unknown): MoiraiError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const code = role === 'writer' ? 'store_outcome_unknown' : 'store_thread_died';
  return new MoiraiError(code, `the ${role} thread of the store died: ${why}`, { cause });
}

export function closedError(): MoiraiError {
  return new MoiraiError('store_closed', 'the store is closed');
}
