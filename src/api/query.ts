import { z } from '@hono/zod-openapi';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { parseDuration } from '../lifecycle/duration.ts';
import { assertPattern, nearestName } from '../lifecycle/events.ts';
import { MAX_PAGE } from '../store/limits.ts';

const DEFAULT_PAGE = 50;

/** Reads a whole number of a query; the text is checked, since numbers are read from nearly anything. */
export function wholeNumber(least: number, most: number) {
  return z
    .string()
    .regex(/^\d{1,16}$/, `is a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `is a whole number from ${least} to ${most}`)
    .openapi({ type: 'integer', minimum: least, maximum: most });
}

/** How many of a list at a time. */
export const limitParam = wholeNumber(1, MAX_PAGE)
  .optional()
  .transform((limit) => limit ?? DEFAULT_PAGE)
  .openapi({ type: 'integer', minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE, description: 'How many at most.' });

export const cursorParam = z.string().optional().openapi({ description: 'The `next` of the page before.' });

/** A list with commas, as the specification says it. */
export function listParam(description: string) {
  return z
    .string()
    .optional()
    .openapi({ description: `${description} Several with commas.` });
}

/** Reads a list with commas. */
export function parseList(text: string | undefined): string[] {
  const words = (text ?? '').split(',').map((word) => word.trim());
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
export function parseSince(text: string, now: number): number {
  // A plus sign that was not escaped arrives as a space.
  const time = text.replace(' ', '+');
  if (ISO_TIME.test(time) && !Number.isNaN(Date.parse(time))) return Date.parse(time);
  try {
    return now - parseDuration(text);
  } catch (thrown) {
    if (!hasCode(thrown, 'bad_duration')) throw thrown;
    throw new MoiraiError(
      'bad_input',
      `since is a time such as 2026-08-01T12:00:00Z or how long ago, such as 24h, not "${text}"`,
      { cause: thrown },
    );
  }
}
