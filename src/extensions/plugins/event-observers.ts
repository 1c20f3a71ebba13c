import type { MoiraiEvent } from '../../lifecycle/events.ts';
import { type Observed, observedUnder } from './names.ts';

interface Observer extends Observed {
  readonly name: string;
  readonly hear: (event: unknown, signal: AbortSignal) => unknown;
}

/** Events of which some observers still have to be called again. */
const MOST_UNFINISHED = 1000;

/** The functions that a plugin registered with `ctx.on`. Lives in the plugin's process. */
export class EventObservers {
  readonly #observers: Observer[] = [];
  /** By event: the observers that have taken it, while another one has not. */
  readonly #taken = new Map<string, Set<Observer>>();

  /** Throws `unknown_event` for a name that no event has. */
  add(name: string, hear: unknown): void {
    this.#observers.push({ name, hear: hear as Observer['hear'], ...observedUnder(String(name)) });
  }

  /** Of the log, each once. */
  get patterns(): string[] {
    return [...new Set(this.#observers.flatMap(({ patterns }) => patterns))];
  }

  get hearTools(): boolean {
    return this.#observers.some(({ name }) => name === 'post_tool_call');
  }

  /** All observers at once, so that none waits for another; next time only those that have not taken it. */
  async tell(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    const taken = this.#taken.get(event.id) ?? new Set();
    this.#keep(event.id, taken);
    const left = this.#observers.filter((observer) => !taken.has(observer));
    const outcomes = await Promise.allSettled(
      left.map(async (observer) => {
        const heard = observer.view(event);
        if (heard !== null) await observer.hear(heard, signal);
        taken.add(observer);
      }),
    );
    const failure = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failure !== undefined) throw failure.reason;
    this.#taken.delete(event.id);
  }

  async tellToolDone(done: unknown, signal: AbortSignal): Promise<void> {
    const observers = this.#observers.filter(({ name }) => name === 'post_tool_call');
    await Promise.all(observers.map(async ({ hear }) => hear(done, signal)));
  }

  #keep(id: string, taken: Set<Observer>): void {
    this.#taken.set(id, taken);
    const [oldest] = this.#taken.keys();
    if (this.#taken.size > MOST_UNFINISHED && oldest !== undefined) this.#taken.delete(oldest);
  }
}
