import type { Timers } from '../../queue/timers.ts';

interface PulseLimits {
  /** Between two questions. */
  readonly pingMs: number;
  /** So many in a row without an answer are too many. */
  readonly pings: number;
}

interface PulseHand {
  ask(): void;
  silent(forMs: number): void;
}

/** Asks a thread again and again whether it is there. */
export class Pulse {
  readonly #timers: Timers;
  readonly #limits: PulseLimits;
  readonly #hand: PulseHand;
  #unanswered = 0;
  #cancel: () => void = () => undefined;

  constructor(timers: Timers, limits: PulseLimits, hand: PulseHand) {
    this.#timers = timers;
    this.#limits = limits;
    this.#hand = hand;
  }

  /** Counts questions and not seconds: after a machine slept, an answer that is on its way still counts. */
  start(): void {
    const { pingMs, pings } = this.#limits;
    this.#cancel = this.#timers.after(pingMs, () => {
      if (this.#unanswered >= pings) return this.#hand.silent(pings * pingMs);
      this.#unanswered++;
      this.#hand.ask();
      this.start();
    });
  }

  answered(): void {
    this.#unanswered = 0;
  }

  stop(): void {
    this.#cancel();
  }
}
