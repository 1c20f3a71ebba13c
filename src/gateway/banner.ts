import { processTimers } from '../queue/timers.ts';

/** A turn that ends within this of the stop needs no banner. */
const AFTER_MS = 2000;
/** It has to be out before the turns are cut. */
const LEAD_MS = 1000;

/** Says that the gateway stops, to those who would have to wait for it, once it is clear that they would. */
export class Banner {
  readonly #cancel: () => void;
  #told: Promise<void> = Promise.resolve();

  constructor(tell: () => Promise<void>, graceMs: number) {
    const patience = Math.min(Math.max(0, graceMs - LEAD_MS), AFTER_MS);
    this.#cancel = processTimers.after(patience, () => {
      this.#told = tell();
    });
  }

  /** Resolves when nobody will be told any more. */
  down(): Promise<void> {
    this.#cancel();
    return this.#told;
  }
}
