import { plainLine } from './plain-text.ts';
import type { WorldSession } from './world.ts';

/** What is asked of the table of open sessions; '' asks for everything. */
export const EVERYTHING = { gateway: '', platform: '', phase: '', kind: '', text: '' };
export type Filter = Readonly<typeof EVERYTHING>;

export function filterSessions(sessions: Iterable<WorldSession>, filter: Filter): WorldSession[] {
  const words = filter.text.toLowerCase().match(/\S+/g) ?? [];
  return [...sessions].filter((session) => isWanted(session, filter, words));
}

function isWanted({ view, room }: WorldSession, filter: Filter, words: readonly string[]): boolean {
  if (filter.gateway !== '' && room !== filter.gateway) return false;
  for (const field of ['platform', 'phase', 'kind'] as const)
    if (filter[field] !== '' && view[field] !== filter[field]) return false;
  if (words.length === 0) return true;
  const text = `${view.title ?? ''} ${view.key} ${view.user ?? ''} ${view.id} ${view.tool ?? ''}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Each value once, in order, with words for it. */
export function choicesOf(values: Iterable<string>): (readonly [string, string])[] {
  return [...new Set(values)].sort(compareTexts).map((value) => [value, plainLine(value)] as const);
}

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });

export function compareTexts(a: string, b: string): number {
  // Most columns have few words, and a collator takes as long for equal ones.
  return a === b ? 0 : collator.compare(a, b);
}

/** ISO times of one zone sort as they are written; none comes last. */
export function compareTimes(a: string | null, b: string | null): number {
  const [left, right] = [a || '\uFFFF', b || '\uFFFF'];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Sorted, and among equals by id: so that nothing dances while it is looked at. */
export function sortRows<T>(
  rows: readonly T[],
  compare: (a: T, b: T) => number,
  descending: boolean,
  idOf: (row: T) => string,
): T[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => sign * compare(a, b) || (idOf(a) < idOf(b) ? -1 : 1));
}
