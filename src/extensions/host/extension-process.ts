import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Timers } from '../../queue/timers.ts';
import type { ExtensionHost, HostedProcess, LineSink } from './extension-host.ts';
import type { Fault, FromExtension, ProcessExit, ProcessSpec, ToExtension } from './protocol.ts';

/** How a process that stays loaded is started and served. */
export interface ExtensionProcessOptions {
  readonly name: string;
  readonly spec: ProcessSpec;
  /** What it is to load. */
  readonly task: unknown;
  readonly loadMs: number;
  /** A call that is late is called off, or its process is killed. */
  readonly onLate: 'abort' | 'kill';
  /** Asks again and again whether it is there; not unless given. */
  readonly pulse?: { readonly pingMs: number; readonly pings: number };
  /** Hears what it prints, beside the log. */
  readonly sink?: LineSink | undefined;
  /** Takes a message that came over its platform; resolves when it is durable. */
  readonly receive?: (platform: string, message: unknown) => Promise<void>;
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

const NO_ANSWER: CallOptions = {};

/** The gateway's side of a process that keeps an extension loaded: calls out, answers in, each behind its deadline. */
export class ExtensionProcess {
  /** Resolves with the reason when it is gone, however it went. */
  readonly gone: Promise<string>;
  readonly #options: ExtensionProcessOptions;
  readonly #timers: Timers;
  readonly #host: ExtensionHost;
  readonly #process: HostedProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #loaded = Promise.withResolvers<unknown>();
  readonly #idle = new Set<() => void>();
  #offer: unknown = null;
  #exit: { readonly why: string; readonly lost: boolean } | null = null;
  #dying: string | null = null;
  #receiving = 0;
  #nextId = 1;
  #unanswered = 0;
  #cancelPing: () => void = () => undefined;

  private constructor(host: ExtensionHost, options: ExtensionProcessOptions, timers: Timers) {
    this.#options = options;
    this.#timers = timers;
    this.#host = host;
    this.#loaded.promise.catch(() => undefined); // Whoever waits for it has it; else it was loaded long ago.
    this.#process = host.start(options.spec, (line) => this.#onLine(line), options.sink);
    this.gone = this.#process.gone.then((exit: ProcessExit) => {
      // It told why, and then exited with a code that tells less.
      this.#fail(this.#dying ?? exit.why, exit.lost);
      return this.#exit?.why ?? exit.why;
    });
    this.#post({ type: 'load', task: options.task });
  }

  /**
   * Starts a process and has it load the extension. Throws `plugin_invalid` when the extension refused, and
   * `plugin_unavailable` when it died or hung.
   */
  static async load(
    host: ExtensionHost,
    options: ExtensionProcessOptions,
    timers: Timers,
    signal: AbortSignal,
  ): Promise<ExtensionProcess> {
    const { loadMs } = options;
    const loading = new ExtensionProcess(host, options, timers);
    const cancel = timers.after(loadMs, () => loading.kill(`was not loaded within ${loadMs} ms`));
    const callOff = (): void => loading.kill('was called off');
    signal.addEventListener('abort', callOff, { once: true });
    if (signal.aborted) callOff();
    try {
      loading.#offer = await host.hold(loading.#loaded.promise);
      loading.#ping();
      return loading;
    } catch (thrown) {
      loading.kill('was not loaded');
      throw thrown;
    } finally {
      cancel();
      signal.removeEventListener('abort', callOff);
    }
  }

  /** What it said of itself when it was loaded. */
  get offer(): unknown {
    return this.#offer;
  }

  get isGone(): boolean {
    return this.#exit !== null;
  }

  /**
   * Has the extension do something. Throws `plugin_unavailable` when it certainly did nothing, `plugin_timeout` when it
   * did not answer in time, and `plugin_failed` when it threw, or died over it.
   */
  call(call: unknown, { timeoutMs, signal }: CallOptions = NO_ANSWER): Promise<unknown> {
    const { name, onLate } = this.#options;
    if (this.#exit !== null) return Promise.reject(this.#away(this.#exit));
    if (signal?.aborted) return Promise.reject(new MoiraiError('plugin_unavailable', `${name} was not asked any more`));
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const pending: Pending = { begun: false, resolve, reject };
    this.#pending.set(id, pending);
    const giveUp = (error: MoiraiError, why: string): void => {
      if (onLate === 'abort') this.#post({ type: 'abort', id });
      this.#settle(id)?.reject(error);
      if (onLate === 'kill') this.kill(why);
    };
    const calledOff = new MoiraiError('plugin_failed', `${name} was called off`, {
      details: { why: 'was called off' },
    });
    const callOff = (): void => giveUp(calledOff, 'was called off');
    signal?.addEventListener('abort', callOff, { once: true });
    const late = (): void => giveUp(this.#lateness(timeoutMs ?? 0, pending), `did not finish in ${timeoutMs} ms`);
    const cancel = timeoutMs === undefined ? () => undefined : this.#timers.after(timeoutMs, late);
    this.#post({ type: 'call', id, call });
    return this.#host.hold(promise).finally(() => {
      cancel();
      signal?.removeEventListener('abort', callOff);
    });
  }

  /** Resolves when nothing is under way, or after so long. */
  async untilIdle(ms: number): Promise<void> {
    if (this.#isIdle) return;
    await new Promise<void>((done) => {
      const cancel = this.#timers.after(ms, done);
      this.#idle.add(() => {
        cancel();
        done();
      });
    });
  }

  /** Says that nothing more will come, and waits for it to leave; for so long. */
  async close(ms: number): Promise<void> {
    this.#process.end();
    const cancel = this.#timers.after(ms, () => this.kill('did not leave'));
    await this.gone;
    cancel();
  }

  /** Ends it with all it started, whatever it does. */
  kill(why: string): void {
    this.#fail(why, false);
    this.#process.kill(why);
  }

  #onLine(line: string): void {
    try {
      this.#onMessage(JSON.parse(line) as FromExtension);
    } catch {
      // Something but the runner wrote to its channel: nothing it says can be trusted any more.
      this.kill('wrote to its channel what is no message, and was killed');
    }
  }

  #onMessage(message: FromExtension): void {
    if (message.type === 'loaded') this.#loaded.resolve(message.offer);
    else if (message.type === 'refused') this.#loaded.reject(refusal(message.fault));
    else if (message.type === 'began') this.#begin(message.id);
    else if (message.type === 'answer') this.#settle(message.id)?.resolve(message.value);
    else if (message.type === 'fault') this.#settle(message.id)?.reject(this.#failure(message.fault));
    else if (message.type === 'receive') void this.#receive(message);
    else if (message.type === 'dying') this.#dying ??= String(message.why);
    else if (message.type === 'pong') this.#unanswered = 0;
  }

  #begin(id: number): void {
    const pending = this.#pending.get(id);
    if (pending !== undefined) pending.begun = true;
  }

  async #receive({ id, platform, message }: Extract<FromExtension, { type: 'receive' }>): Promise<void> {
    this.#receiving++;
    let fault: Fault | null = null;
    try {
      await this.#options.receive?.(platform, message);
    } catch (thrown) {
      const { code, message: why } = MoiraiError.wrap(thrown);
      fault = { code, message: why };
    }
    this.#receiving--;
    this.#post({ type: 'received', id, fault });
    this.#settled();
  }

  /** Counts questions and not seconds: after a machine slept, an answer that is on its way still counts. */
  #ping(): void {
    const { pulse } = this.#options;
    if (pulse === undefined || this.isGone) return;
    const { pingMs, pings } = pulse;
    this.#cancelPing = this.#timers.after(pingMs, () => {
      if (this.#unanswered >= pings) return this.kill(`did not answer for ${pings * pingMs} ms`);
      this.#unanswered++;
      this.#post({ type: 'ping' });
      this.#ping();
    });
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    this.#settled();
    return pending;
  }

  get #isIdle(): boolean {
    return this.#pending.size === 0 && this.#receiving === 0;
  }

  #settled(): void {
    if (!this.#isIdle) return;
    for (const done of this.#idle) done();
    this.#idle.clear();
  }

  #post(message: ToExtension): void {
    if (this.#exit === null) this.#process.write(JSON.stringify(message));
  }

  /** The first reason is the one that counts. */
  #fail(why: string, lost: boolean): void {
    if (this.#exit !== null) return;
    this.#exit = { why, lost };
    this.#cancelPing();
    const { name } = this.#options;
    const details = { why, lost };
    this.#loaded.reject(new MoiraiError('plugin_unavailable', `${name} could not be loaded: it ${why}`, { details }));
    for (const [id, { begun }] of [...this.#pending]) {
      const died = new MoiraiError('plugin_failed', `${name} died over it: it ${why}`, {
        details: { ...details, died: true },
      });
      this.#settle(id)?.reject(begun && !lost ? died : this.#away(this.#exit));
    }
  }

  #away({ why, lost }: { why: string; lost: boolean }): MoiraiError {
    const message = `${this.#options.name} is away: it ${why}`;
    return new MoiraiError('plugin_unavailable', message, { details: { why, lost } });
  }

  #failure({ message, code }: Fault): MoiraiError {
    if (code === 'plugin_unavailable') return new MoiraiError('plugin_unavailable', message);
    // What the extension threw, with its code, by which others tell a lost connection from a failure.
    const cause = Object.assign(new Error(message), code === null ? {} : { code });
    const details = { thrown: message, code, why: `threw ${message}` };
    return new MoiraiError('plugin_failed', `${this.#options.name}: ${message}`, { cause, details });
  }

  #lateness(ms: number, { begun }: Pending): MoiraiError {
    const { name, onLate } = this.#options;
    const why = `did not finish in ${ms} ms and was ${onLate === 'kill' ? 'killed' : 'called off'}`;
    if (begun) return new MoiraiError('plugin_timeout', `${name} did not answer within ${ms} ms`, { details: { why } });
    return new MoiraiError('plugin_unavailable', `${name} was busy for ${ms} ms`, { details: { why, busy: true } });
  }
}

function refusal({ message, code }: Fault): MoiraiError {
  return new MoiraiError('plugin_invalid', message, { details: { code, why: `threw ${message}` } });
}

/** What a subscriber throws: what the extension did not get is not counted, what it failed in is. */
export function asSubscriber(thrown: unknown): MoiraiError {
  const error = MoiraiError.wrap(thrown, 'subscriber_failed');
  const { code, details } = error;
  const isDown =
    code === 'subscriber_unavailable' ||
    code === 'plugin_unavailable' ||
    // The extension itself says that what it needs is down.
    details.code === 'subscriber_unavailable';
  const failed = code === 'plugin_timeout' ? 'subscriber_timeout' : 'subscriber_failed';
  return new MoiraiError(isDown ? 'subscriber_unavailable' : failed, error.message, { cause: error.cause ?? error });
}
