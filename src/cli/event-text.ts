import type { SequencedEvent } from '../store/transactions/reading.ts';
import { printable, shorten } from './print.ts';

/** What every event has; the rest is what this one says. */
const COMMON = new Set([
  ...['id', 'session_seq', 'type', 'at', 'session_id', 'session_key', 'platform', 'user_id', 'kind', 'instance'],
]);
const VALUE_CHARS = 120;

/** An event as one line for people. */
export function eventLine({ seq, event }: SequencedEvent, withSession: boolean): string {
  const said = Object.entries(event)
    .filter(([name, value]) => !COMMON.has(name) && value !== null)
    .map(([name, value]) => `${name}=${shorten(valueText(value), VALUE_CHARS)}`);
  const place = withSession ? [event.session_id ?? '-'] : [];
  const parts = [String(seq).padStart(6), event.at, event.type.padEnd(22), ...place, ...said];
  return printable(parts.join('  ').trimEnd());
}

function valueText(value: unknown): string {
  return typeof value === 'string' && /^[\w:.-]+$/.test(value) ? value : JSON.stringify(value);
}
