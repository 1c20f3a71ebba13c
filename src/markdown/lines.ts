/** What single lines of Markdown mean. Each is read in time that grows with its length and no faster. */

export interface FenceOpening {
  readonly mark: string;
  /** What stands behind the mark: the name of a language, mostly. */
  readonly info: string;
}

/** The fence that a line opens; null if it opens none. */
export function fenceOpening(line: string): FenceOpening | null {
  const [whole, mark] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
  if (whole === undefined || mark === undefined) return null;
  const info = line.slice(whole.length);
  return info.includes('`') ? null : { mark, info: info.trim() };
}

export function closesFence(line: string, mark: string): boolean {
  const close = line.trim();
  return close.length >= mark.length && close === mark.charAt(0).repeat(close.length);
}

/** The level and the words of a heading, without the marks some people close it with; null if it is none. */
export function headingOf(line: string): { readonly level: number; readonly words: string } | null {
  const [whole, marks] = /^ {0,3}(#{1,6})(?=\s)/.exec(line) ?? [];
  if (whole === undefined || marks === undefined) return null;
  const words = line.slice(whole.length).trim();
  let end = words.length;
  while (words.charAt(end - 1) === '#') end -= 1;
  const isClosed = end < words.length && (end === 0 || words.charAt(end - 1).trim() === '');
  return { level: marks.length, words: isClosed ? words.slice(0, end).trimEnd() : words };
}

/** Whether this is the line between the head of a table and its rows, as `|---|:-:|`. */
export function isTableRule(line: string): boolean {
  const [first = '', ...others] = line.trim().replace(/^\|/, '').split('|');
  return /^:?-+:?$/.test(first.trim()) && others.every((cell) => /^:?-*:?$/.test(cell.trim()));
}
