import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Handler, HandlerDeps } from './handler.ts';
import { LoadedHandler } from './loaded-handler.ts';

/** As many events of one hook are in hand at the same time, each of another conversation. */
export const MOST_WORKERS = 4;
/** So long an event waits for a busy handler before it gets a process of its own. */
export const IMPATIENT_MS = 500;
const IDLE_MS = 10_000;

interface Job {
  readonly event: MoiraiEvent;
  readonly signal: AbortSignal;
  readonly resolve: () => void;
  readonly reject: (error: MoiraiError) => void;
}

/**
 * Keeps a handler loaded. All events go to one process, one after another, as long as it keeps up; where one is stuck,
 * the other conversations get a second process, and so on up to four, which leave again when they are not needed.
 */
export class WorkerPool implements Handler {
  readonly #command: readonly string[];
  readonly #file: string;
  readonly #deps: HandlerDeps;
  readonly #queue: Job[] = [];
  /** The first one is the one that stays. */
  readonly #idle: LoadedHandler[] = [];
  readonly #busy = new Set<LoadedHandler>();
  readonly #leaving = new Map<LoadedHandler, () => void>();
  readonly #retirement = new AbortController();
  #loading: Promise<void> | null = null;
  #impatient: (() => void) | null = null;

  constructor(command: readonly string[], file: string, deps: HandlerDeps) {
    this.#command = command;
    this.#file = file;
    this.#deps = deps;
  }

  get processes(): number {
    return this.#idle.length + this.#busy.size;
  }

  async run(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const job: Job = { event, signal, resolve, reject };
    const leave = (): void => this.#withdraw(job);
    signal.addEventListener('abort', leave, { once: true });
    this.#queue.push(job);
    this.#assign();
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  async retire(): Promise<void> {
    this.#retirement.abort();
    this.#refuseAll('is being reloaded');
    await this.#loading;
    await Promise.all([...this.#busy].map(({ gone }) => gone).concat(this.#idle.splice(0).map((each) => each.close())));
  }

  async close(): Promise<void> {
    this.#retirement.abort();
    this.#refuseAll('was stopped');
    await Promise.all([...this.#busy].map((worker) => worker.kill()));
    await this.retire();
  }

  /** Hands out what can be handed out, and sees to it that the rest does not wait for ever. */
  #assign(): void {
    if (this.#retirement.signal.aborted) this.#refuseAll('was stopped');
    while (this.#queue.length > 0) {
      const worker = this.#idle.shift();
      if (worker === undefined) break;
      void this.#serve(worker, this.#queue.shift() as Job);
    }
    if (this.#queue.length === 0 || this.#loading !== null) return;
    if (this.processes === 0) this.#load();
    else if (this.processes < MOST_WORKERS) this.#loadSoon();
  }

  #loadSoon(): void {
    this.#impatient ??= this.#deps.timers.after(IMPATIENT_MS, () => {
      this.#impatient = null;
      if (this.#queue.length > 0 && this.#loading === null && this.processes < MOST_WORKERS) this.#load();
    });
  }

  #load(): void {
    this.#loading = LoadedHandler.load(this.#command, this.#file, this.#deps, this.#retirement.signal)
      .then((worker) => {
        void worker.gone.then(() => this.#remove(worker));
        this.#settle(worker);
      })
      // With another process at work the queue has somebody to wait for.
      .catch((thrown) => this.processes === 0 && this.#refuse(MoiraiError.wrap(thrown, 'subscriber_unavailable')))
      .then(() => {
        this.#loading = null;
        this.#assign();
      });
  }

  /** A worker has nothing to do: it stays if it is the only one, and else for a while. */
  #settle(worker: LoadedHandler): void {
    if (this.#retirement.signal.aborted) return void worker.close();
    this.#idle.push(worker);
    this.#leaving.get(worker)?.();
    this.#leaving.set(
      worker,
      this.#deps.timers.after(IDLE_MS, () => {
        if (this.#idle.includes(worker) && this.processes > 1) {
          this.#remove(worker);
          void worker.close();
        }
      }),
    );
  }

  async #serve(worker: LoadedHandler, job: Job): Promise<void> {
    this.#busy.add(worker);
    let killed = false;
    try {
      await worker.run(job.event, job.signal);
      job.resolve();
    } catch (thrown) {
      const error = MoiraiError.wrap(thrown, 'subscriber_failed');
      job.reject(error);
      killed = error.code === 'subscriber_timeout' || job.signal.aborted;
    }
    this.#busy.delete(worker);
    if (!killed && !worker.isGone) this.#settle(worker);
    this.#assign();
  }

  #remove(worker: LoadedHandler): void {
    const at = this.#idle.indexOf(worker);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#leaving.get(worker)?.();
    this.#leaving.delete(worker);
  }

  #withdraw(job: Job): void {
    const at = this.#queue.indexOf(job);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    job.reject(new MoiraiError('subscriber_unavailable', `${this.#deps.name} was called off`));
  }

  #refuseAll(why: string): void {
    this.#refuse(new MoiraiError('subscriber_unavailable', `${this.#deps.name} ${why}`));
  }

  #refuse(error: MoiraiError): void {
    for (const job of this.#queue.splice(0)) job.reject(error);
  }
}
