import type { Logger } from '../log/logger.ts';
import type { Timers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import { TurnChannel } from './turn-channel.ts';

/** How often to ask about turns that do not run here: another process may run them, or have dropped them. */
const POLL_MS = 500;

/** The channels of the turns that this process runs or waits for. */
export class TurnChannels {
  readonly #store: Store;
  readonly #timers: Timers;
  readonly #log: Logger;
  readonly #channels = new Map<string, TurnChannel>();
  /** Turns that run here: their end is published by whoever runs them, and nobody has to ask for it. */
  readonly #running = new Set<string>();
  #cancelPoll: (() => void) | null = null;
  #closed = false;

  constructor(store: Store, timers: Timers, log: Logger) {
    this.#store = store;
    this.#timers = timers;
    this.#log = log;
  }

  /** The channel of a turn, open until the turn is over. */
  open(turnId: string): TurnChannel {
    const known = this.#channels.get(turnId);
    if (known !== undefined) return known;
    const channel = new TurnChannel(turnId, this.#log, () => this.#timers.elapsed());
    if (this.#closed) channel.close();
    else {
      this.#channels.set(turnId, channel);
      this.#poll();
    }
    return channel;
  }

  /** The channel of a turn that may run anywhere, or be over. */
  follow(turnId: string): TurnChannel {
    const channel = this.open(turnId);
    this.look(turnId);
    return channel;
  }

  /** The channel of a turn that begins to run here. */
  run(turnId: string): TurnChannel {
    const channel = this.open(turnId);
    this.#running.add(turnId);
    return channel;
  }

  /** It runs here no longer; if its end was not published, the store is asked for it. */
  stopped(turnId: string): void {
    this.#running.delete(turnId);
    this.look(turnId);
  }

  /** Publishes the end of a turn that runs here. */
  finish(channel: TurnChannel, turn: TurnResultRow): void {
    this.#running.delete(channel.turnId);
    this.#channels.delete(channel.turnId);
    channel.publish({ type: 'finished', turn });
  }

  /** A turn that does not run here may be over: asks the store now. */
  look(turnId: string): void {
    void this.#ask(turnId);
  }

  /** Asks a last time; who has no answer then waits in vain. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelPoll?.();
    await Promise.all([...this.#channels.keys()].map((turnId) => this.#ask(turnId)));
    for (const channel of this.#channels.values()) {
      channel.publish({ type: 'interrupted' });
      channel.close();
    }
    this.#channels.clear();
  }

  async #ask(turnId: string): Promise<void> {
    const channel = this.#channels.get(turnId);
    if (channel === undefined) return;
    try {
      const turn = await this.#store.read('turnResult', { turnId });
      if (turn === null) {
        this.#channels.delete(turnId);
        channel.close();
      } else if (turn.state === 'over') this.finish(channel, turn);
    } catch {
      // The next look may succeed.
    }
  }

  #poll(): void {
    if (this.#cancelPoll !== null || this.#closed) return;
    this.#cancelPoll = this.#timers.after(POLL_MS, () => {
      this.#cancelPoll = null;
      for (const turnId of this.#channels.keys()) if (!this.#running.has(turnId)) this.look(turnId);
      if (this.#channels.size > 0) this.#poll();
    });
  }
}
