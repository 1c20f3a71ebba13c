import type { ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ExtensionHost, HostedProcess, LineSink, WaitOptions } from './extension-host.ts';
import type { Fault, Message, ProcessExit, ProcessSpec } from './protocol.ts';

/** How a process that stays loaded is started and served. */
export interface ExtensionProcessOptions {
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
  /** What the extension can call. */
  readonly methods?: ReadonlyMap<string, (...args: unknown[]) => Promise<unknown>>;
}

export type CallOptions = Omit<WaitOptions, 'giveUp'>;

type Exit = Pick<ProcessExit, 'why' | 'lost'>;

interface Pending {
  begun: boolean;
  resolve(value: unknown): void;
  reject(error: MoiraiError): void;
}

/** The gateway's side of a process that keeps an extension loaded: calls out, answers in, each behind its deadline. */
export class ExtensionProcess {
  /** Resolves with the reason when it is gone, however it went. */
  readonly gone: Promise<string>;
  readonly #options: ExtensionProcessOptions;
  readonly #host: ExtensionHost;
  readonly #process: HostedProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #idle = new Set<() => void>();
  #exit: Exit | null = null;
  #dying: string | null = null;
  /** Calls of the extension that are under way. */
  #serving = 0;
  #nextId = 1;
  #unanswered = 0;
  #cancelPing: () => void = () => undefined;

  private constructor(host: ExtensionHost, options: ExtensionProcessOptions) {
    this.#options = options;
    this.#host = host;
    this.#process = host.start(options.spec, (line) => this.#onLine(line), options.sink);
    this.gone = this.#process.gone.then(({ why, lost }) => {
      // It told why, and then exited with a code that tells less.
      this.#fail(this.#dying ?? why, lost);
      return this.#exit?.why ?? why;
    });
  }

  /**
   * Starts a process and has it load the extension; `offer` is what the extension then said of itself. Throws
   * `plugin_invalid` when the extension refused, and `plugin_unavailable` when it died or hung.
   */
  static async load(
    host: ExtensionHost,
    options: ExtensionProcessOptions,
    signal: AbortSignal,
  ): Promise<{ process: ExtensionProcess; offer: unknown }> {
    const { loadMs: timeoutMs, task } = options;
    const process = new ExtensionProcess(host, options);
    const giveUp = (reason: string): void =>
      process.kill(reason === 'late' ? `was not loaded within ${timeoutMs} ms` : 'was called off');
    try {
      const offer = await host.wait(process.call('load', [task]), { timeoutMs, signal, giveUp });
      process.#ping();
      return { process, offer };
    } catch (thrown) {
      throw process.#refusal(MoiraiError.wrap(thrown));
    }
  }

  get isGone(): boolean {
    return this.#exit !== null;
  }

  /**
   * Has the extension do something. Throws `plugin_unavailable` when it certainly did nothing, `plugin_timeout` when it
   * did not answer in time, and `plugin_failed` when it threw, or died over it.
   */
  async call(method: string, args: readonly unknown[], options: CallOptions = {}): Promise<unknown> {
    const { onLate } = this.#options;
    if (this.#exit !== null) throw this.#away(this.#exit);
    if (options.signal?.aborted) throw this.#error('plugin_unavailable', 'was not asked any more');
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const pending: Pending = { begun: false, resolve, reject };
    this.#pending.set(id, pending);
    const giveUp = (reason: 'late' | 'called off'): void => {
      if (onLate === 'abort') this.#post({ type: 'abort', id });
      const why = reason === 'late' ? `did not finish in ${options.timeoutMs} ms` : 'was called off';
      const late = this.#lateness(options.timeoutMs ?? 0, pending);
      this.#settle(id)?.reject(reason === 'late' ? late : this.#error('plugin_failed', why, { why }));
      if (onLate === 'kill') this.kill(why);
    };
    this.#post({ type: 'call', id, method, args });
    return this.#host.wait(promise, { ...options, giveUp });
  }

  /** Resolves when nothing is under way, or after so long. */
  async untilIdle(ms: number): Promise<void> {
    if (this.#isIdle) return;
    await new Promise<void>((done) => {
      const cancel = this.#host.timers.after(ms, done);
      this.#idle.add(() => {
        cancel();
        done();
      });
    });
  }

  /** Says that nothing more will come, and waits for it to leave; for so long. */
  async close(ms: number): Promise<void> {
    this.#process.end();
    const cancel = this.#host.timers.after(ms, () => this.kill('did not leave'));
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
      this.#onMessage(JSON.parse(line) as Message);
    } catch {
      // Something but the runner wrote to its channel: nothing it says can be trusted any more.
      this.kill('wrote to its channel what is no message, and was killed');
    }
  }

  #onMessage(message: Message): void {
    if (message.type === 'began') this.#begin(message.id);
    else if (message.type === 'answer') this.#settle(message.id)?.resolve(message.value);
    else if (message.type === 'fault') this.#settle(message.id)?.reject(this.#failure(message.fault));
    else if (message.type === 'call') void this.#serve(message);
    else if (message.type === 'dying') this.#dying ??= String(message.why);
    else if (message.type === 'pong') this.#unanswered = 0;
  }

  #begin(id: number): void {
    const pending = this.#pending.get(id);
    if (pending !== undefined) pending.begun = true;
  }

  async #serve({ id, method, args }: Extract<Message, { type: 'call' }>): Promise<void> {
    this.#serving++;
    try {
      const run = this.#options.methods?.get(method);
      if (run === undefined) throw new MoiraiError('bad_input', `the gateway has no method ${method}`);
      this.#post({ type: 'answer', id, value: await run(...args) });
    } catch (thrown) {
      const { code, message } = MoiraiError.wrap(thrown);
      this.#post({ type: 'fault', id, fault: { code, message } });
    }
    this.#serving--;
    this.#settled();
  }

  /** Counts questions and not seconds: after a machine slept, an answer that is on its way still counts. */
  #ping(): void {
    const { pulse } = this.#options;
    if (pulse === undefined || this.isGone) return;
    const { pingMs, pings } = pulse;
    this.#cancelPing = this.#host.timers.after(pingMs, () => {
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
    return this.#pending.size === 0 && this.#serving === 0;
  }

  #settled(): void {
    if (!this.#isIdle) return;
    for (const done of this.#idle) done();
    this.#idle.clear();
  }

  #post(message: Message): void {
    if (this.#exit === null) this.#process.write(JSON.stringify(message));
  }

  /** The first reason is the one that counts. */
  #fail(why: string, lost: boolean): void {
    if (this.#exit !== null) return;
    this.#exit = { why, lost };
    this.#cancelPing();
    for (const [id, { begun }] of [...this.#pending]) {
      const died = this.#error('plugin_failed', `died over it: it ${why}`, { why, lost, died: true });
      this.#settle(id)?.reject(begun && !lost ? died : this.#away(this.#exit));
    }
  }

  /** Why it could not be loaded: it threw something, or it is gone. */
  #refusal({ details }: MoiraiError): MoiraiError {
    if (this.#exit === null) {
      this.kill('was not loaded');
      return new MoiraiError('plugin_invalid', String(details.thrown), { details });
    }
    return this.#error('plugin_unavailable', `could not be loaded: it ${this.#exit.why}`, this.#exit);
  }

  #away(exit: Exit): MoiraiError {
    return this.#error('plugin_unavailable', `is away: it ${exit.why}`, exit);
  }

  #failure({ message, code }: Fault): MoiraiError {
    const details = { thrown: message, code, why: `threw ${message}` };
    if (code === 'plugin_unavailable') return new MoiraiError('plugin_unavailable', message, { details });
    // What the extension threw, with its code, by which others tell a lost connection from a failure.
    const cause = Object.assign(new Error(message), code === null ? {} : { code });
    return new MoiraiError('plugin_failed', `${this.#options.spec.name}: ${message}`, { cause, details });
  }

  #lateness(ms: number, { begun }: Pending): MoiraiError {
    const { onLate } = this.#options;
    const why = `did not finish in ${ms} ms and was ${onLate === 'kill' ? 'killed' : 'called off'}`;
    if (begun) return this.#error('plugin_timeout', `did not answer within ${ms} ms`, { why });
    return this.#error('plugin_unavailable', `was busy for ${ms} ms`, { why, busy: true });
  }

  #error(code: ErrorCode, what: string, details: Record<string, unknown> = {}): MoiraiError {
    return new MoiraiError(code, `${this.#options.spec.name} ${what}`, { details });
  }
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
