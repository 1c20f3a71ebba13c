import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Logger } from '../../log/logger.ts';
import type { Capacity } from '../../queue/queue-worker.ts';
import { Breaker } from '../host/breaker.ts';
import { ExtensionRecord, type Listener } from '../host/subscriptions.ts';
import { ExecutableHandler } from './executable-handler.ts';
import { type Handler, type HookDeps, timeoutOf } from './handler.ts';
import { HandlerPool, IMPATIENT_MS, LOAD_MS, MOST_PROCESSES } from './handler-pool.ts';
import type { UsableHook } from './hook-kind.ts';

/** What runs the handler of a hook. Nothing is started before the first event. */
export function makeHandler(hook: UsableHook, deps: HookDeps): Handler {
  return hook.handler.kind === 'executable' ? new ExecutableHandler(hook, deps) : new HandlerPool(hook, deps);
}

/** A hook at work: its handler as it is now, and whether it may work. */
export class LiveHook implements Listener {
  readonly name: string;
  readonly concurrency = MOST_PROCESSES;
  readonly record = new ExtensionRecord();
  readonly #deps: HookDeps;
  readonly #log: Logger;
  #hook: UsableHook;
  #handler: Handler;
  #breaker: Breaker;

  constructor(hook: UsableHook, deps: HookDeps, log: Logger) {
    this.name = hook.name;
    this.#deps = deps;
    this.#log = log.child({ hook: hook.name });
    this.#hook = hook;
    this.#handler = makeHandler(hook, deps);
    this.#breaker = this.#newBreaker();
  }

  get events(): readonly string[] {
    return this.#hook.manifest.events;
  }

  /** Of its handler, with all that can come before its handler begins. */
  get timeoutMs(): number {
    return timeoutOf(this.#hook, this.#deps) + LOAD_MS + IMPATIENT_MS;
  }

  get resting(): boolean {
    return this.#breaker.open;
  }

  get processes(): number {
    return this.#handler.processes;
  }

  /** While it rests its events wait where they are, and cost nothing. */
  capacity(): Capacity {
    return this.#breaker.capacity(MOST_PROCESSES);
  }

  async handle(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    const handler = this.#handler;
    const breaker = this.#breaker;
    if (!breaker.admit()) {
      const { lastError } = this.record;
      throw new MoiraiError('subscriber_unavailable', `${this.name} rests after failures; the last: ${lastError}`);
    }
    try {
      await handler.run(event, signal);
      breaker.succeeded();
      this.record.handled++;
    } catch (thrown) {
      if (signal.aborted) breaker.calledOff();
      // It was waiting for the code that has just been replaced.
      else if (handler !== this.#handler && hasCode(thrown, 'subscriber_unavailable'))
        return this.handle(event, signal);
      else this.#failed(breaker, event, MoiraiError.wrap(thrown, 'subscriber_failed'));
      throw thrown;
    }
  }

  /** Whether these files are the ones at work. */
  knows({ fingerprint }: UsableHook): boolean {
    return this.#hook.fingerprint === fingerprint;
  }

  /** Goes on with other files. What is under way is finished by the old code. */
  use(hook: UsableHook): void {
    const old = this.#handler;
    this.#hook = hook;
    this.#handler = makeHandler(hook, this.#deps);
    this.#breaker = this.#newBreaker();
    // Its processes leave by themselves; one that is lost has left.
    void old.retire();
  }

  close(): Promise<void> {
    return this.#handler.close();
  }

  #newBreaker(): Breaker {
    return new Breaker(() => this.#deps.host.timers.elapsed());
  }

  #failed(breaker: Breaker, event: MoiraiEvent, error: MoiraiError): void {
    this.record.countFailure(error);
    this.#log.warn('hook failed', { event: event.id, type: event.type, error: error.message });
    const rested = breaker.open;
    if (hasCode(error, 'subscriber_unavailable')) breaker.trip();
    else breaker.failed(event.session_key);
    if (breaker.open && !rested) this.#log.warn('hook rests; it is tried from time to time');
  }
}
