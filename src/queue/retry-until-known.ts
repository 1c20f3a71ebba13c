import { MoiraiError } from '../errors/moirai-error.ts';
import type { Timers } from './timers.ts';

export interface RetryDeps {
  readonly timers: Timers;
  readonly random: () => number;
  /** The process stops, or has lost its lease: nobody waits for the outcome any more. */
  readonly stopped: () => boolean;
  /** The store did not take the write; it is tried again. */
  readonly failed: (error: MoiraiError) => void;
}

const BASE_MS = 100;
const CAP_MS = 15_000;
/** An error without a name may be a defect, which no waiting mends: after so many tries the caller gives up. */
const UNEXPLAINED_TRIES = 12;

/**
 * Repeats a write that settles something until the store says what came of it: done, or refused for a reason that no
 * repetition changes. The write carries its own identity (a token, a command id), so that doing it twice is doing it once.
 */
export async function retryUntilKnown<T>(write: () => Promise<T>, deps: RetryDeps): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (thrown) {
      const error = MoiraiError.wrap(thrown);
      const hopeless = error.code === 'internal' && tries >= UNEXPLAINED_TRIES;
      if (deps.stopped() || hopeless || !isStoreTrouble(error)) throw error;
      deps.failed(error);
      const wait = backoff(tries, BASE_MS, CAP_MS, deps.random);
      await new Promise<void>((done) => deps.timers.after(wait, done));
    }
  }
}

/** How long to wait after so many failures in a row: doubled each time, with a little chance, at most `capMs`. */
export function backoff(failures: number, baseMs: number, capMs: number, random: () => number): number {
  const wait = Math.min(capMs, baseMs * 2 ** Math.min(Math.max(failures, 1) - 1, 20));
  return Math.round(wait * (0.8 + 0.4 * random()));
}

/** The store could not do it now, or could not say whether it did: the same write may succeed later. */
export function isStoreTrouble({ code }: MoiraiError): boolean {
  if (code === 'store_closed' || code === 'store_newer') return false;
  return code.startsWith('store_') || code === 'internal';
}
