import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Logger } from '../../log/logger.ts';
import type { Capacity } from '../../queue/queue-worker.ts';
import type { Timers } from '../../queue/timers.ts';
import { Breaker } from '../host/breaker.ts';
import type { Handler } from './handler.ts';
import type { UsableHook } from './hook-kind.ts';

/** How a hook has fared since it was loaded. */
export interface HookRecord {
  handled: number;
  failed: number;
  lastError: string | null;
}

/** A hook at work: its handler as it is now, and whether it may work. */
export class LiveHook {
  readonly record: HookRecord = { handled: 0, failed: 0, lastError: null };
  readonly #timers: Timers;
  readonly #log: Logger;
  #hook: UsableHook;
  #handler: Handler;
  #breaker: Breaker;

  constructor(hook: UsableHook, handler: Handler, timers: Timers, log: Logger) {
    this.#log = log;
    this.#hook = hook;
    this.#handler = handler;
    this.#timers = timers;
    this.#breaker = new Breaker(() => timers.elapsed());
  }

  get hook(): UsableHook {
    return this.#hook;
  }

  get resting(): boolean {
    return this.#breaker.open;
  }

  get processes(): number {
    return this.#handler.processes;
  }

  /** While it rests its events wait where they are, and cost nothing. */
  capacity(most: number): Capacity {
    return this.#breaker.capacity(most);
  }

  async handle(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    const handler = this.#handler;
    const breaker = this.#breaker;
    if (!breaker.admit()) {
      const { lastError } = this.record;
      throw new MoiraiError('subscriber_unavailable', `${this.hook.name} rests after failures; the last: ${lastError}`);
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

  /** Goes on with other code. What is under way is finished by the old one. */
  replace(hook: UsableHook, handler: Handler): void {
    const old = this.#handler;
    this.#hook = hook;
    this.#handler = handler;
    this.#breaker = new Breaker(() => this.#timers.elapsed());
    // Its processes leave by themselves; one that is lost has left.
    void old.retire();
  }

  close(): Promise<void> {
    return this.#handler.close();
  }

  #failed(breaker: Breaker, event: MoiraiEvent, error: MoiraiError): void {
    this.record.failed++;
    this.record.lastError = error.message;
    this.#log.warn('hook failed', { event: event.id, type: event.type, error: error.message });
    const rested = breaker.open;
    if (hasCode(error, 'subscriber_unavailable')) breaker.trip();
    else breaker.failed(event.session_key);
    if (breaker.open && !rested) this.#log.warn('hook rests; it is tried from time to time');
  }
}
