import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { parseDuration } from './duration.ts';
import { assertPattern, nearestName } from './events.ts';

/* What operators and clients write to filter a list. `name` is what they call the filter. */

/** Reads a list with commas. */
export function parseList(text = ''): string[] {
  const words = text.split(',').map((word) => word.trim());
  return words.filter((word) => word !== '');
}

/** Reads a list whose words are known; any other one is refused with the nearest of them. */
export function parseNames(name: string, text: string | undefined, known: readonly string[]): string[] {
  const words = parseList(text);
  for (const word of words) {
    if (known.includes(word)) continue;
    const nearest = nearestName(word, known);
    throw new MoiraiError(
      'bad_input',
      `${name} has no "${word}"; did you mean "${nearest}"? There are ${known.join(', ')}`,
    );
  }
  return words;
}

/** Reads a list of event types and patterns. */
export function parseTypes(text: string | undefined): string[] {
  const types = parseList(text);
  for (const type of types) assertPattern(type);
  return types;
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/;

/** Reads a time: ISO 8601, or how long ago as a duration. */
export function parseTime(name: string, text: string, now: number): number {
  if (ISO_TIME.test(text) && !Number.isNaN(Date.parse(text))) return Date.parse(text);
  try {
    return now - parseDuration(text);
  } catch (thrown) {
    if (!hasCode(thrown, 'bad_duration')) throw thrown;
    throw new MoiraiError(
      'bad_input',
      `${name} is a time such as 2026-08-01T12:00:00Z or how long ago, such as 24h, not "${text}"`,
      { cause: thrown },
    );
  }
}
