import { createInterface } from 'node:readline';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { HandlerDeps } from './handler.ts';
import { type Exit, exitText, HandlerProcess } from './handler-process.ts';

/** To load a handler takes what its imports take; that is not counted as its work. */
export const LOAD_MS = 15_000;
const GOODBYE_MS = 1000;

/** What a runner answers: to the first line how loading went, to every other one how its event went. */
interface Answer {
  readonly error: string | null;
}

/** A process that keeps a handler loaded and hands it one event at a time, in answers of one line to lines of ours. */
export class LoadedHandler {
  readonly #process: HandlerProcess;
  readonly #deps: HandlerDeps;
  #pending: PromiseWithResolvers<Answer> | null = null;
  #exit: Exit | null = null;

  private constructor(process: HandlerProcess, deps: HandlerDeps) {
    this.#process = process;
    this.#deps = deps;
    const lines = createInterface({ input: process.channel });
    lines.on('line', (line) => this.#onLine(line));
    lines.on('error', () => undefined); // The process is gone, which says it all.
    // Once and for all: whatever is added to a promise for each event stays there as long as the process lives.
    void process.gone.then((exit) => {
      this.#exit = exit;
      this.#pending?.reject(gone(exit));
    });
  }

  /** Starts a runner and has it load the handler; aborting the signal kills it meanwhile. Throws `subscriber_unavailable`. */
  static async load(
    command: readonly string[],
    file: string,
    deps: HandlerDeps,
    signal: AbortSignal,
  ): Promise<LoadedHandler> {
    const process = await HandlerProcess.start(command, deps, { stdin: 'ignore' });
    const handler = new LoadedHandler(process, deps);
    try {
      await handler.#ask({ file, name: deps.name }, LOAD_MS, signal);
    } catch (thrown) {
      void process.kill();
      const why = MoiraiError.wrap(thrown).message;
      throw new MoiraiError('subscriber_unavailable', `${deps.name} could not be loaded: ${why}`, { cause: thrown });
    }
    return handler;
  }

  /** Resolves when the process is gone, for whatever reason. */
  get gone(): Promise<unknown> {
    return this.#process.gone;
  }

  get isGone(): boolean {
    return this.#exit !== null;
  }

  async run(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    try {
      await this.#ask({ type: event.type, context: event }, this.#deps.timeoutMs, signal);
    } catch (thrown) {
      const { code, message } = MoiraiError.wrap(thrown);
      throw new MoiraiError(code, `${this.#deps.name} ${message} (${event.id})`, { cause: thrown });
    }
  }

  /** Says that there is nothing more to come, and waits for it to leave. */
  async close(): Promise<void> {
    this.#process.channel.end();
    const late = this.#deps.timers.after(GOODBYE_MS, () => void this.#process.kill());
    await this.#process.gone;
    late();
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  async #ask(question: unknown, timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (this.#exit !== null) throw gone(this.#exit);
    const pending = Promise.withResolvers<Answer>();
    this.#pending = pending;
    const kill = (code: 'subscriber_failed' | 'subscriber_timeout', why: string): void => {
      pending.reject(new MoiraiError(code, why));
      void this.#process.kill();
    };
    const callOff = (): void => kill('subscriber_failed', 'was called off');
    const late = `did not finish in ${timeoutMs} ms and was killed`;
    const cancel = this.#deps.timers.after(timeoutMs, () => kill('subscriber_timeout', late));
    signal.addEventListener('abort', callOff, { once: true });
    if (signal.aborted) callOff();
    this.#process.channel.write(`${JSON.stringify(question)}\n`);
    try {
      const { error } = await pending.promise;
      if (error !== null) throw new MoiraiError('subscriber_failed', `threw ${error}`);
    } finally {
      cancel();
      signal.removeEventListener('abort', callOff);
      this.#pending = null;
    }
  }

  #onLine(line: string): void {
    try {
      const { error } = JSON.parse(line) as { error?: unknown };
      this.#pending?.resolve({ error: typeof error === 'string' ? error : null });
    } catch {
      // Somebody but the runner wrote to its channel: nothing it says can be trusted any more.
      void this.#process.kill();
    }
  }
}

/** Gone without an answer: that is no success, whatever it exited with. */
function gone(exit: Exit): MoiraiError {
  return new MoiraiError('subscriber_failed', exitText(exit));
}
