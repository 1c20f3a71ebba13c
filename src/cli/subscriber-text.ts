import { isoTime } from '../engine/views.ts';
import type { SubscriberStatus } from '../store/transactions/subscribers.ts';
import { shorten } from './print.ts';

/** How far a subscriber of the log is: none of it for one that no gateway has registered yet. */
export function figuresOf(status: SubscriberStatus | undefined) {
  return {
    lag: status?.lag ?? 0,
    oldest_pending_at: isoTime(status?.oldestPendingAt ?? null),
    failures: status?.failures ?? 0,
    dead_letters: status?.deadLetters ?? 0,
    last_error: status?.lastError ?? null,
  };
}

const EVENTS_CHARS = 40;
const TROUBLE_CHARS = 100;

export const SUBSCRIBER_HEADINGS = ['WAITING', 'DEAD', 'TROUBLE'];

/** The cells below `SUBSCRIBER_HEADINGS`. */
export function subscriberCells(row: {
  readonly lag: number;
  readonly dead_letters: number;
  readonly problem: string | null;
  readonly last_error: string | null;
}): string[] {
  const trouble = shorten(row.problem ?? row.last_error ?? '', TROUBLE_CHARS);
  return [String(row.lag), String(row.dead_letters), trouble];
}

/** What a subscriber listens to, as a cell. */
export function eventsCell(events: readonly string[]): string {
  return shorten(events.join(','), EVENTS_CHARS);
}
