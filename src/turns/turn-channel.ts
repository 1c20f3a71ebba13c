import type { Logger } from '../log/logger.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import type { TurnActivity, TurnEvent } from './turn-event.ts';

type Listener = (event: TurnEvent) => void;

/** Of a text in pieces, so much is kept for those who come late. */
const MOST_KEPT_CHARS = 1024 * 1024;

/**
 * One turn as a stream of events. Everybody who shows, measures or waits for the turn subscribes to it; who comes late
 * gets what was so far first. A listener that throws spoils nothing for the others.
 */
export class TurnChannel {
  readonly turnId: string;
  /** Resolves when the turn is over; with null when this process stops first, or there is no such turn. */
  readonly ended: Promise<TurnResultRow | null>;
  readonly #resolve: (turn: TurnResultRow | null) => void;
  readonly #log: Logger;
  readonly #elapsed: () => number;
  readonly #history: TurnEvent[] = [];
  readonly #listeners = new Set<Listener>();
  readonly #viewers = new Set<Listener>();
  #activity: TurnActivity = { phase: 'thinking', tool: null };

  /** When something was last published, by the clock given to the constructor; 0 before. */
  publishedAt = 0;

  constructor(turnId: string, log: Logger, elapsed: () => number) {
    this.turnId = turnId;
    this.#log = log;
    this.#elapsed = elapsed;
    const { promise, resolve } = Promise.withResolvers<TurnResultRow | null>();
    this.ended = promise;
    this.#resolve = resolve;
  }

  publish(event: TurnEvent): void {
    this.publishedAt = this.#elapsed();
    this.#remember(event);
    for (const listener of this.#listeners) {
      // The path of every piece of text: one call from here to its reader.
      try {
        listener(event);
      } catch (error) {
        this.#failed(error);
      }
    }
    if (event.type === 'finished') this.#resolve(event.turn);
  }

  /** Nothing more is heard of the turn in this process. */
  close(): void {
    this.#resolve(null);
  }

  /** Calls back with what was so far, and then with what happens. The returned function stops it. */
  subscribe(listener: Listener): () => void {
    try {
      for (const event of this.#history) listener(event);
    } catch (error) {
      this.#failed(error);
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls back once, when the run that is under way is over: finished, or interrupted. */
  onEnd(callback: () => void): void {
    const listener: Listener = ({ type }) => {
      if (type !== 'finished' && type !== 'interrupted') return;
      this.#listeners.delete(listener);
      callback();
    };
    this.#listeners.add(listener);
  }

  /** The same for a person who looks on and could answer a question. */
  watch(listener: Listener): () => void {
    const stop = this.subscribe(listener);
    this.#viewers.add(listener);
    return () => {
      this.#viewers.delete(listener);
      stop();
    };
  }

  get watched(): boolean {
    return this.#viewers.size > 0;
  }

  get activity(): TurnActivity {
    return this.#activity;
  }

  /** A listener that fails must not change what happens. */
  #failed(error: unknown): void {
    this.#log.warn('a listener of a turn failed', { turn: this.turnId, error });
  }

  #remember(event: TurnEvent): void {
    this.#activity = activityAfter(this.#activity, event);
    const last = this.#history.at(-1);
    if (!isPiece(event) || last?.type !== event.type) this.#history.push(event);
    else if (last.text.length + event.text.length <= MOST_KEPT_CHARS) {
      this.#history[this.#history.length - 1] = { type: event.type, text: last.text + event.text };
    }
  }
}

function isPiece(event: TurnEvent): event is Extract<TurnEvent, { type: 'text' | 'reasoning' }> {
  return event.type === 'text' || event.type === 'reasoning';
}

function activityAfter(before: TurnActivity, event: TurnEvent): TurnActivity {
  if (event.type === 'text') return before.phase === 'replying' ? before : { phase: 'replying', tool: null };
  if (event.type !== 'tool') return before.phase === 'tool' ? before : { phase: 'thinking', tool: null };
  return event.state === 'start' ? { phase: 'tool', tool: event.name } : { phase: 'thinking', tool: null };
}
