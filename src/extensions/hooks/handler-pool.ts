import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import { ExtensionProcess } from '../host/extension-process.ts';
import { type Handler, type HandlerTask, type HookDeps, hookProcess, timeoutOf } from './handler.ts';
import type { UsableHook } from './hook-kind.ts';

/** As many events of one hook are in hand at the same time, each of another conversation. */
export const MOST_PROCESSES = 4;
/** So long an event waits for a busy handler before it gets a process of its own. */
export const IMPATIENT_MS = 500;
/** To load a handler takes what its imports take; that is not counted as its work. */
export const LOAD_MS = 15_000;
const IDLE_MS = 10_000;
const GOODBYE_MS = 1000;

/**
 * Keeps a handler loaded. All events go to one process, one after another, as long as it keeps up; where one is stuck,
 * the other conversations get a second process, and so on up to four, which leave again when they are not needed.
 */
export class HandlerPool implements Handler {
  readonly #hook: UsableHook;
  readonly #deps: HookDeps;
  readonly #waiting: PromiseWithResolvers<ExtensionProcess>[] = [];
  /** Each with what cancels its leaving. */
  readonly #idle = new Map<ExtensionProcess, () => void>();
  readonly #busy = new Set<ExtensionProcess>();
  readonly #retirement = new AbortController();
  #loading: Promise<void> | null = null;
  #impatient: (() => void) | null = null;

  constructor(hook: UsableHook, deps: HookDeps) {
    this.#hook = hook;
    this.#deps = deps;
  }

  get processes(): number {
    return this.#idle.size + this.#busy.size;
  }

  async run(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    const process = await this.#take(signal);
    try {
      await process.call('event', [event], { timeoutMs: timeoutOf(this.#hook, this.#deps), signal });
    } catch (thrown) {
      throw this.#failure(MoiraiError.wrap(thrown), event);
    } finally {
      this.#busy.delete(process);
      this.#release(process);
    }
  }

  async retire(): Promise<void> {
    this.#retirement.abort();
    this.#refuse('is being reloaded');
    await this.#loading;
    await Promise.all([...this.#idle.keys()].map((process) => this.#dismiss(process)));
    await Promise.all([...this.#busy].map(({ gone }) => gone));
  }

  async close(): Promise<void> {
    this.#retirement.abort();
    this.#refuse('was stopped');
    for (const process of this.#busy) process.kill('was stopped');
    await this.retire();
  }

  /** A process that is loaded and has nothing to do, which is busy from then on. */
  async #take(signal: AbortSignal): Promise<ExtensionProcess> {
    const waiter = Promise.withResolvers<ExtensionProcess>();
    const withdraw = (): void => {
      if (!this.#waiting.includes(waiter)) return;
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      waiter.reject(this.#unavailable('was called off'));
    };
    signal.addEventListener('abort', withdraw, { once: true });
    this.#waiting.push(waiter);
    this.#assign();
    return waiter.promise.finally(() => signal.removeEventListener('abort', withdraw));
  }

  /** Hands out the processes that are idle, and sees to it that the rest does not wait for ever. */
  #assign(): void {
    if (this.#retirement.signal.aborted) this.#refuse('was stopped');
    for (const [process, stay] of this.#idle) {
      const waiter = this.#waiting.shift();
      if (waiter === undefined) break;
      stay();
      this.#idle.delete(process);
      this.#busy.add(process);
      waiter.resolve(process);
    }
    if (this.#waiting.length === 0 || this.#loading !== null) return;
    if (this.processes === 0) this.#load();
    else this.#impatient ??= this.#deps.host.timers.after(IMPATIENT_MS, () => this.#loadAnother());
  }

  #loadAnother(): void {
    this.#impatient = null;
    if (this.#waiting.length > 0 && this.#loading === null && this.processes < MOST_PROCESSES) this.#load();
  }

  #load(): void {
    const { host, sink } = this.#deps;
    const { name, handler } = this.#hook;
    const task: HandlerTask = { file: handler.file, name };
    const options = { spec: hookProcess(this.#hook, this.#deps), task, loadMs: LOAD_MS, onLate: 'kill', sink } as const;
    this.#loading = ExtensionProcess.load(host, options, this.#retirement.signal)
      .then(({ process }) => {
        void process.gone.then(() => this.#forget(process));
        this.#release(process);
      })
      // With another process at work the queue has something to wait for.
      .catch((thrown) => {
        if (this.processes === 0) this.#refuse(`could not be loaded: ${whyOf(thrown)}`, thrown);
      })
      .then(() => {
        this.#loading = null;
        this.#assign();
      });
  }

  /** A process has nothing to do: it stays if it is the only one, and else for a while. */
  #release(process: ExtensionProcess): void {
    if (this.#retirement.signal.aborted) void this.#dismiss(process);
    else if (!process.isGone) {
      const leave = (): void => {
        if (this.processes > 1) void this.#dismiss(process);
      };
      this.#idle.set(process, this.#deps.host.timers.after(IDLE_MS, leave));
    }
    this.#assign();
  }

  #forget(process: ExtensionProcess): void {
    this.#idle.get(process)?.();
    this.#idle.delete(process);
  }

  async #dismiss(process: ExtensionProcess): Promise<void> {
    this.#forget(process);
    await process.close(GOODBYE_MS);
  }

  /** A process that was idle and loaded has begun what it was given, whether it came to say so or not. */
  #failure(error: MoiraiError, { id }: MoiraiEvent): MoiraiError {
    const { code, details } = error;
    const failed = code === 'plugin_timeout' || details.busy === true ? 'subscriber_timeout' : 'subscriber_failed';
    const message = `${this.#hook.name} ${whyOf(error)} (${id})`;
    return new MoiraiError(details.lost === true ? 'subscriber_unavailable' : failed, message, { cause: error });
  }

  /** Nothing that waits is handed over. */
  #refuse(why: string, cause?: unknown): void {
    for (const waiter of this.#waiting.splice(0)) waiter.reject(this.#unavailable(why, cause));
  }

  #unavailable(why: string, cause?: unknown): MoiraiError {
    return new MoiraiError('subscriber_unavailable', `${this.#hook.name} ${why}`, { cause });
  }
}

/** What the handler did, as `threw no` or `exited with 3`. */
function whyOf(thrown: unknown): string {
  const { details, message } = MoiraiError.wrap(thrown);
  return typeof details.why === 'string' ? details.why : message;
}
