import { closesFence, fenceOpening, isTableRule } from './lines.ts';

/** Lines that belong together. */
export interface LineBlock {
  readonly lines: readonly string[];
  /** The line behind it. */
  readonly next: number;
}

/** What stands between fences. */
export interface CodeBlock extends LineBlock {
  /** The name of its language; null where there is none. */
  readonly language: string | null;
}

/** The code of a fence that opens here. One that is never closed goes to the end: the rest of it is still being written. */
export function codeAt(lines: readonly string[], at: number): CodeBlock | null {
  const opening = fenceOpening(lines[at] ?? '');
  if (opening === null) return null;
  let end = at + 1;
  while (end < lines.length && !closesFence(lines[end] ?? '', opening.mark)) end += 1;
  const [language] = /^[\w+#.-]{1,32}/.exec(opening.info) ?? [];
  return { lines: lines.slice(at + 1, end), language: language ?? null, next: end + 1 };
}

/** A table that begins here: its head, the line of dashes, its rows. */
export function tableAt(lines: readonly string[], at: number): LineBlock | null {
  if (!isTableStart(lines, at)) return null;
  let next = at + 2;
  while (isRow(lines[next])) next += 1;
  return { lines: lines.slice(at, next), next };
}

export function isTableStart(lines: readonly string[], at: number): boolean {
  return isRow(lines[at]) && isRow(lines[at + 1]) && isTableRule(lines[at + 1] ?? '');
}

function isRow(line: string | undefined): boolean {
  return line?.includes('|') === true;
}
