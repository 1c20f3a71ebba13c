import { isatty } from 'node:tty';
import { complain } from './print.ts';

const EVERY_MS = 100;

/** Shows on a terminal how far something is, in a line that is written over; elsewhere nothing. */
export function shownProgress(what: string, json: boolean): { show(done: number, total: number): void; end(): void } {
  const shown = isatty(2) && !json;
  let last = 0;
  return {
    show: (done, total) => {
      const now = performance.now();
      if (!shown || now - last < EVERY_MS) return;
      last = now;
      complain(`\r\u001b[K${what}: ${total === 0 ? 100 : Math.floor((100 * done) / total)} %`);
    },
    end: () => {
      if (last > 0) complain('\r\u001b[K');
    },
  };
}
