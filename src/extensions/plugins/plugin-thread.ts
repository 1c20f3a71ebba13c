import { Worker } from 'node:worker_threads';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Logger } from '../../log/logger.ts';
import type { Timers } from '../../queue/timers.ts';
import type { InboxMessage } from './api.ts';
import type { UsablePlugin } from './discover.ts';
import type { Call, Fault, FromThread, Offer, ThreadTask, ToThread } from './protocol.ts';
import { Pulse } from './pulse.ts';

/** How long a thread may take for what. */
export interface ThreadLimits {
  readonly loadMs: number;
  /** Between two questions whether it is still there. */
  readonly pingMs: number;
  /** So many questions in a row without an answer, and it is ended. */
  readonly pings: number;
  /** What is under way when it is replaced has so long to finish. */
  readonly graceMs: number;
  readonly unloadMs: number;
}

export const THREAD_LIMITS: ThreadLimits = { loadMs: 15_000, pingMs: 5000, pings: 6, graceMs: 10_000, unloadMs: 3000 };

const YOUNG_MB = 16;
/** A thread that is inside the system (a blocking read, say) cannot be ended before it comes back. */
const TERMINATE_MS = 5000;
const OPTIONS = ['--disable-warning=ExperimentalWarning', '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON'];

/** What threads are made and served with. */
export interface ThreadDeps {
  readonly home: string;
  readonly timers: Timers;
  readonly log: Logger;
  readonly limits: ThreadLimits;
  readonly environment: Readonly<Record<string, string>>;
  /** Takes a message that came over a plugin's platform; resolves when it is durable. */
  readonly receive: (plugin: string, platform: string, message: InboxMessage) => Promise<void>;
}

export interface CallOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

interface Pending {
  begun: boolean;
  resolve(value: unknown): void;
  reject(error: MoiraiError): void;
}

/** The other end of a plugin's thread: calls out, answers in, each behind its deadline. */
export class PluginThread {
  readonly plugin: UsablePlugin;
  /** Resolves with the reason when the thread is gone, however it went. */
  readonly gone: Promise<string>;
  readonly #deps: ThreadDeps;
  readonly #log: Logger;
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  readonly #idle = new Set<() => void>();
  readonly #loaded = Promise.withResolvers<Offer>();
  readonly #left: (why: string) => void;
  readonly #pulse: Pulse;
  /** What has to happen once in each thread, as the start of a platform. */
  readonly #prepared = new Map<string, Promise<unknown>>();
  #offer: Offer | null = null;
  #why: string | null = null;
  #receiving = 0;
  #nextId = 1;

  private constructor(plugin: UsablePlugin, deps: ThreadDeps) {
    this.plugin = plugin;
    this.#deps = deps;
    this.#log = deps.log.child({ plugin: plugin.name });
    const { promise, resolve } = Promise.withResolvers<string>();
    this.gone = promise;
    this.#left = resolve;
    this.#pulse = new Pulse(deps.timers, deps.limits, {
      ask: () => this.#post({ type: 'ping' }),
      silent: (ms) => this.kill(`it did not answer for ${ms} ms`),
    });
    this.#worker = startWorker(plugin, deps);
    // A plugin never keeps the process from ending.
    this.#worker.unref();
    this.#worker.on('message', (message: FromThread) => this.#onMessage(message));
    this.#worker.on('messageerror', () => this.kill('it sent what cannot be read'));
    // It can overtake what the thread said before; at the exit all that has been read.
    let trouble: string | null = null;
    this.#worker.on('error', (thrown: unknown) => {
      trouble ??= troubleOf(thrown);
    });
    this.#worker.on('exit', (code) => {
      this.#fail(trouble ?? `it exited with ${code}`);
      this.#left(this.#why ?? '');
    });
  }

  /** Starts a thread and loads the plugin in it. Throws `plugin_invalid`, or `plugin_unavailable` when it died or hung. */
  static async load(plugin: UsablePlugin, deps: ThreadDeps, signal: AbortSignal): Promise<PluginThread> {
    const thread = new PluginThread(plugin, deps);
    const { loadMs } = deps.limits;
    const cancel = deps.timers.after(loadMs, () => thread.kill(`it was not loaded within ${loadMs} ms`));
    const callOff = (): void => thread.kill('it was called off');
    signal.addEventListener('abort', callOff, { once: true });
    if (signal.aborted) callOff();
    try {
      thread.#offer = await thread.#loaded.promise;
      thread.#pulse.start();
      return thread;
    } catch (thrown) {
      thread.kill('it was not loaded');
      throw thrown;
    } finally {
      cancel();
      signal.removeEventListener('abort', callOff);
    }
  }

  get offer(): Offer {
    if (this.#offer === null) throw new MoiraiError('internal', 'the thread is not loaded');
    return this.#offer;
  }

  get isGone(): boolean {
    return this.#why !== null;
  }

  /**
   * Has the plugin do something. Throws `plugin_unavailable` when it certainly did nothing, `plugin_timeout` when it did
   * not answer in time, and `plugin_failed` when it threw, or died over it.
   */
  call(call: Call, { timeoutMs, signal }: CallOptions = {}): Promise<unknown> {
    const { name } = this.plugin;
    if (this.#why !== null)
      return Promise.reject(new MoiraiError('plugin_unavailable', `${name} is away: ${this.#why}`));
    if (signal?.aborted) return Promise.reject(new MoiraiError('plugin_unavailable', `${name} was not asked any more`));
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const pending: Pending = { begun: false, resolve, reject };
    this.#pending.set(id, pending);
    const giveUp = (error: MoiraiError): void => {
      this.#post({ type: 'abort', id });
      this.#settle(id)?.reject(error);
    };
    const callOff = (): void => giveUp(new MoiraiError('plugin_failed', `${name} was called off`));
    signal?.addEventListener('abort', callOff, { once: true });
    const cancel =
      timeoutMs === undefined
        ? () => undefined
        : this.#deps.timers.after(timeoutMs, () => giveUp(lateness(name, timeoutMs, pending.begun)));
    try {
      this.#post({ type: 'call', id, call });
    } catch (cause) {
      this.#settle(id)?.reject(new MoiraiError('plugin_failed', `${name} cannot be given this`, { cause }));
    }
    return promise.finally(() => {
      cancel();
      signal?.removeEventListener('abort', callOff);
    });
  }

  /** Does something once in this thread's life; whoever comes later gets the same promise. A failure is forgotten. */
  prepare(what: string, make: () => Promise<unknown>): Promise<unknown> {
    const known = this.#prepared.get(what);
    if (known !== undefined) return known;
    const made = make();
    this.#prepared.set(what, made);
    made.catch(() => this.#prepared.delete(what));
    return made;
  }

  /** Lets what is under way finish for a while, then has the plugin leave, and ends the thread. */
  async retire(graceMs: number = this.#deps.limits.graceMs): Promise<void> {
    await this.#untilIdle(graceMs);
    try {
      await this.call({ what: 'unload' }, { timeoutMs: this.#deps.limits.unloadMs });
    } catch (thrown) {
      // It ends now in any case.
      if (!this.isGone) this.#log.warn('plugin did not leave properly', { error: MoiraiError.wrap(thrown).message });
    }
    this.kill('it was unloaded');
    await this.gone;
  }

  /** Ends the thread, whatever it does. */
  kill(why: string): void {
    this.#fail(why);
    // What the system holds inside itself ends when it comes back; nobody waits for that.
    this.#deps.timers.after(TERMINATE_MS, () => this.#left(this.#why ?? why));
    void this.#worker.terminate();
  }

  #onMessage(message: FromThread): void {
    if (message.type === 'loaded') this.#loaded.resolve(message.offer);
    else if (message.type === 'refused') this.#loaded.reject(refusal(message.fault));
    else if (message.type === 'began') this.#begin(message.id);
    else if (message.type === 'answer') this.#settle(message.id)?.resolve(JSON.parse(message.value));
    else if (message.type === 'fault') this.#settle(message.id)?.reject(this.#failure(message.fault));
    else if (message.type === 'receive') void this.#receive(message.id, message.platform, message.message);
    else if (message.type === 'line') this.#log[message.level](message.message, { ...message.fields });
    else if (message.type === 'pong') this.#pulse.answered();
  }

  #begin(id: number): void {
    const pending = this.#pending.get(id);
    if (pending !== undefined) pending.begun = true;
  }

  #failure({ message, code }: Fault): MoiraiError {
    const { name } = this.plugin;
    if (code === 'plugin_unavailable') return new MoiraiError('plugin_unavailable', message);
    // What the plugin threw, with its code, by which others tell a lost connection from a failure.
    const cause = Object.assign(new Error(message), code === null ? {} : { code });
    return new MoiraiError('plugin_failed', `${name}: ${message}`, { cause, details: { thrown: message, code } });
  }

  async #receive(id: number, platform: string, message: InboxMessage): Promise<void> {
    this.#receiving++;
    let fault: Fault | null = null;
    try {
      await this.#deps.receive(this.plugin.name, platform, message);
    } catch (thrown) {
      const { code, message: why } = MoiraiError.wrap(thrown);
      fault = { code, message: why };
    }
    this.#receiving--;
    this.#post({ type: 'received', id, fault });
    this.#settled();
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    this.#settled();
    return pending;
  }

  #settled(): void {
    if (this.#pending.size > 0 || this.#receiving > 0) return;
    for (const done of this.#idle) done();
    this.#idle.clear();
  }

  async #untilIdle(ms: number): Promise<void> {
    if (this.#pending.size === 0 && this.#receiving === 0) return;
    await new Promise<void>((done) => {
      const cancel = this.#deps.timers.after(ms, done);
      this.#idle.add(() => {
        cancel();
        done();
      });
    });
  }

  #post(message: ToThread): void {
    if (this.#why === null) this.#worker.postMessage(message);
  }

  /** The first reason is the one that counts. */
  #fail(why: string): void {
    if (this.#why !== null) return;
    this.#why = why;
    this.#pulse.stop();
    const { name } = this.plugin;
    this.#loaded.reject(new MoiraiError('plugin_unavailable', `${name} could not be loaded: ${why}`));
    this.#loaded.promise.catch(() => undefined); // Who waits for it has it; else it was loaded long ago.
    for (const [id, { begun }] of [...this.#pending]) {
      const error = begun
        ? new MoiraiError('plugin_failed', `${name} died over it: ${why}`, { details: { died: true } })
        : new MoiraiError('plugin_unavailable', `${name} is away: ${why}`);
      this.#settle(id)?.reject(error);
    }
  }
}

function startWorker({ name, folder, main, manifest }: UsablePlugin, { home, environment }: ThreadDeps): Worker {
  const file = import.meta.url.endsWith('.ts') ? './plugin-worker.ts' : './plugin-worker.js';
  const task: ThreadTask = { name, folder, home, main, config: manifest.config };
  const worker = new Worker(new URL(file, import.meta.url), {
    ...{ workerData: task, name: `plugin:${name}`, env: { ...environment }, argv: [], execArgv: OPTIONS },
    ...{ stdin: false, stdout: true, stderr: true },
    resourceLimits: { maxOldGenerationSizeMb: manifest.memoryMb, maxYoungGenerationSizeMb: YOUNG_MB },
  });
  // The thread sends its lines to us in another way; what goes past that is let go.
  worker.stdout.resume();
  worker.stderr.resume();
  return worker;
}

function refusal({ message, code }: Fault): MoiraiError {
  return new MoiraiError('plugin_invalid', message, { details: { code } });
}

function lateness(name: string, ms: number, begun: boolean): MoiraiError {
  if (begun) return new MoiraiError('plugin_timeout', `${name} did not answer within ${ms} ms`);
  return new MoiraiError('plugin_unavailable', `${name} was busy for ${ms} ms`, { details: { busy: true } });
}

function troubleOf(thrown: unknown): string {
  const code = (thrown as NodeJS.ErrnoException | null)?.code;
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return 'it ran out of memory';
  return `it threw ${thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)}`;
}
