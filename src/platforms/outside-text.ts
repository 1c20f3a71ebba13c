/** What could turn a line around, end it early, or hide something in it. */
const TROUBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const LONGEST = 64;
/** Of what would become nothing or blanks, so much more than is shown is looked at. */
const LOOKED_AT = 16;

/**
 * A name or title that strangers chose, fit for a prompt, a log or a screen: one short line without control characters,
 * and without the brackets in which the gateway itself speaks to the agent.
 */
export function sanitize(text: string, longest = LONGEST): string {
  const beginning = text.slice(0, longest * LOOKED_AT);
  const line = beginning
    .replaceAll(TROUBLE, ' ')
    .replaceAll('[', '(')
    .replaceAll(']', ')')
    .replaceAll(/\s+/g, ' ')
    .trim();
  const points = [...line];
  return points.length <= longest && beginning.length === text.length
    ? line
    : `${points.slice(0, longest - 1).join('')}…`;
}
