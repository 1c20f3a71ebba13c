/**
 * Text from people, made safe to look at. Characters that would act instead of being read (escape sequences of
 * terminals, marks that turn the direction of what follows) are shown as symbols; line ends and tabs stay.
 */
export function plainText(text: string): string {
  // Most texts have none, and a search is much cheaper than a copy.
  return text.search(ACTING) >= 0 ? text.replace(ACTING, symbolOf) : text;
}

/** More than any label or cell shows. */
const LONGEST_LINE = 4000;

/** The same in one line, for labels and cells. */
export function plainLine(text: string): string {
  return plainText(text.slice(0, LONGEST_LINE).replace(/\s+/g, ' ').trim());
}

/** The beginning of a text that is longer than fits, cut between characters as people see them. */
export function clampText(text: string, most: number): { readonly text: string; readonly cut: boolean } {
  if (text.length <= most) return { text, cut: false };
  // Never in the middle of a pair of surrogates.
  const end = /[\uD800-\uDBFF]/.test(text.charAt(most - 1)) ? most - 1 : most;
  return { text: text.slice(0, end), cut: true };
}

// C0 without tab and line feed, DEL, C1, line and paragraph separators, marks and overrides of direction, invisible
// joiners of nothing, surrogates without a partner.
const ACTING = /[^\P{Cc}\n\t]|[\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]|\p{Surrogate}/gu;

function symbolOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  // Unicode has a picture for each of the first 32, and for delete.
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `\u27E8${code.toString(16).toUpperCase().padStart(4, '0')}\u27E9`;
}
