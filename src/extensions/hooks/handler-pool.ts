import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import { ExtensionProcess } from '../host/extension-process.ts';
import { type Handler, type HandlerDeps, type HandlerTask, type HookCall, hookProcess } from './handler.ts';

/** As many events of one hook are in hand at the same time, each of another conversation. */
export const MOST_PROCESSES = 4;
/** So long an event waits for a busy handler before it gets a process of its own. */
export const IMPATIENT_MS = 500;
/** To load a handler takes what its imports take; that is not counted as its work. */
export const LOAD_MS = 15_000;
const IDLE_MS = 10_000;
const GOODBYE_MS = 1000;

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
export class HandlerPool implements Handler {
  readonly #command: readonly string[];
  readonly #file: string;
  readonly #deps: HandlerDeps;
  readonly #queue: Job[] = [];
  /** The first one is the one that stays. */
  readonly #idle: ExtensionProcess[] = [];
  readonly #busy = new Set<ExtensionProcess>();
  readonly #leaving = new Map<ExtensionProcess, () => void>();
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
    await Promise.all(this.#idle.splice(0).map((process) => process.close(GOODBYE_MS)));
    await Promise.all([...this.#busy].map(({ gone }) => gone));
  }

  async close(): Promise<void> {
    this.#retirement.abort();
    this.#refuseAll('was stopped');
    for (const process of this.#busy) process.kill('was stopped');
    await this.retire();
  }

  /** Hands out what can be handed out, and sees to it that the rest does not wait for ever. */
  #assign(): void {
    if (this.#retirement.signal.aborted) this.#refuseAll('was stopped');
    while (this.#queue.length > 0) {
      const process = this.#idle.shift();
      if (process === undefined) break;
      void this.#serve(process, this.#queue.shift() as Job);
    }
    if (this.#queue.length === 0 || this.#loading !== null) return;
    if (this.processes === 0) this.#load();
    else if (this.processes < MOST_PROCESSES) this.#loadSoon();
  }

  #loadSoon(): void {
    this.#impatient ??= this.#deps.timers.after(IMPATIENT_MS, () => {
      this.#impatient = null;
      if (this.#queue.length > 0 && this.#loading === null && this.processes < MOST_PROCESSES) this.#load();
    });
  }

  #load(): void {
    const { host, timers, name, sink } = this.#deps;
    const task: HandlerTask = { file: this.#file, name };
    const spec = hookProcess(this.#deps, this.#command);
    const options = { name, spec, task, loadMs: LOAD_MS, onLate: 'kill', sink } as const;
    this.#loading = ExtensionProcess.load(host, options, timers, this.#retirement.signal)
      .then((process) => {
        void process.gone.then(() => this.#remove(process));
        this.#settle(process);
      })
      // With another process at work the queue has something to wait for.
      .catch((thrown) => {
        const why = `${name} could not be loaded: ${whyOf(thrown)}`;
        if (this.processes === 0) this.#refuse(new MoiraiError('subscriber_unavailable', why, { cause: thrown }));
      })
      .then(() => {
        this.#loading = null;
        this.#assign();
      });
  }

  /** A process has nothing to do: it stays if it is the only one, and else for a while. */
  #settle(process: ExtensionProcess): void {
    if (this.#retirement.signal.aborted) return void process.close(GOODBYE_MS);
    this.#idle.push(process);
    this.#leaving.get(process)?.();
    this.#leaving.set(
      process,
      this.#deps.timers.after(IDLE_MS, () => {
        if (this.#idle.includes(process) && this.processes > 1) {
          this.#remove(process);
          void process.close(GOODBYE_MS);
        }
      }),
    );
  }

  async #serve(process: ExtensionProcess, { event, signal, resolve, reject }: Job): Promise<void> {
    this.#busy.add(process);
    const call: HookCall = { type: event.type, context: event };
    try {
      await process.call(call, { timeoutMs: this.#deps.timeoutMs, signal });
      resolve();
    } catch (thrown) {
      reject(this.#failure(MoiraiError.wrap(thrown), event));
    }
    this.#busy.delete(process);
    if (!process.isGone) this.#settle(process);
    this.#assign();
  }

  /** A process that was idle and loaded has begun what it was given, whether it came to say so or not. */
  #failure(error: MoiraiError, { id }: MoiraiEvent): MoiraiError {
    const { code, details } = error;
    const failed = code === 'plugin_timeout' || details.busy === true ? 'subscriber_timeout' : 'subscriber_failed';
    const message = `${this.#deps.name} ${whyOf(error)} (${id})`;
    return new MoiraiError(details.lost === true ? 'subscriber_unavailable' : failed, message, { cause: error });
  }

  #remove(process: ExtensionProcess): void {
    const at = this.#idle.indexOf(process);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#leaving.get(process)?.();
    this.#leaving.delete(process);
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

/** What the handler did, as `threw no` or `exited with 3`. */
function whyOf(thrown: unknown): string {
  const { details, message } = MoiraiError.wrap(thrown);
  return typeof details.why === 'string' ? details.why : message;
}
