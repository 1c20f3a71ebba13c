import { setTimeout } from 'node:timers/promises';
import { hasCode } from '../errors/moirai-error.ts';
import { complain } from './print.ts';
import { warn } from './report-error.ts';
import { stopSignal } from './stop-signal.ts';

/** How long the end of a session is tried when the store is away. */
const PATIENCE_MS = 60_000;
const RETRY_MS = 500;
const PASSING = ['store_unreachable', 'store_locked', 'store_timeout', 'store_outcome_unknown', 'store_full'] as const;

/**
 * Ends a session whose process is about to leave. A store that is away is waited for, until a signal says not to. An end
 * that could not be written is reported; the next process that opens the store reaps the session.
 */
export async function endReliably(what: string, end: () => Promise<void>): Promise<void> {
  const impatience = stopSignal();
  const deadline = performance.now() + PATIENCE_MS;
  let said = false;
  for (;;) {
    try {
      return await end();
    } catch (thrown) {
      const passing = hasCode(thrown, ...PASSING);
      if (!passing || impatience.aborted || performance.now() > deadline) {
        complain(`moirai: the end of ${what} could not be written; it will be found and reaped\n`);
        warn(thrown);
        return;
      }
      if (!said)
        complain(`moirai: the end of the session cannot be written yet; trying for a minute, Ctrl-C gives up\n`);
      said = true;
      await setTimeout(RETRY_MS, undefined, { signal: impatience }).catch(() => undefined); // Impatient.
    }
  }
}
