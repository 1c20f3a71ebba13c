import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode, type MoiraiError } from '../../errors/moirai-error.ts';

/** How long to wait before the next try; null when there is none. */
export type RetryPlan = (error: MoiraiError) => number | null;

/** Waits, and rejects with the signal's reason as soon as it aborts. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

const LONGEST_WAIT_MS = 60_000;
const RATE_LIMIT_TRIES = 3;
const OUTAGE_WAITS_MS = [500, 2_000];

export const wait: Wait = async (ms, signal) => {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
};

/**
 * One plan per request: a server that asks to slow down is obeyed, as long as all waits together stay within a minute;
 * an outage gets two more tries, a cut stream one. Everything else is final, and so is everything once a word was shown,
 * since another try would say it twice.
 */
export function retryPlan(hasShown: () => boolean): RetryPlan {
  let waited = 0;
  let limited = 0;
  let outages = 0;
  let cuts = 0;
  return (error) => {
    if (hasShown()) return null;
    if (hasCode(error, 'model_rate_limited')) {
      limited += 1;
      const { retryAfterMs } = error.details;
      const ms = typeof retryAfterMs === 'number' ? retryAfterMs : 1_000 * 2 ** (limited - 1);
      waited += ms;
      return limited < RATE_LIMIT_TRIES && waited <= LONGEST_WAIT_MS ? ms : null;
    }
    if (hasCode(error, 'model_unavailable')) return OUTAGE_WAITS_MS[outages++] ?? null;
    if (hasCode(error, 'model_cut')) return cuts++ === 0 ? 0 : null;
    return null;
  };
}
