/** The longest text of one message, in UTF-16 units. More is refused, so that one message cannot starve the writer. */
export const MAX_TEXT_CHARS = 16 * 1024 * 1024;

/** How much of a message is searchable; PostgreSQL cannot index an unbounded text. */
export const SEARCHED_CHARS = 65_536;

/** The longest page of a listing. */
export const MAX_PAGE = 500;

/** A page of a transcript ends with the message that fills it: an answer of any size would be too large for a thread. */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024;

/** How many rows a listing gives that was asked for so many: at least one, whatever the caller says. */
export function pageSize(asked: number): number {
  return Math.max(1, Math.min(Math.trunc(asked) || 1, MAX_PAGE));
}
