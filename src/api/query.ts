import { z } from '@hono/zod-openapi';
import { parseTime } from '../lifecycle/list-filters.ts';
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

const UNESCAPED_OFFSET = / (?=\d{2}:\d{2}$)/;

/** Reads a time of a query, in which a plus sign that was not escaped arrives as a space. */
export function parseSince(text: string, now: number): number {
  return parseTime('since', text.replace(UNESCAPED_OFFSET, '+'), now);
}
