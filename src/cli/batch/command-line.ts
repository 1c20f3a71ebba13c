import { printable, shorten } from '../print.ts';

const TITLE_CHARS = 100;
const KEPT_CHARS = 4096;

/** A command as one would type it, short and safe to show. */
export function titleOf(command: readonly string[]): string {
  return shorten(printable(command.map(quote).join(' ')), TITLE_CHARS);
}

function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The words of a command as they are kept: all of them, unless they are a book. */
export function keptWords(command: readonly string[]): string[] {
  const kept: string[] = [];
  let left = KEPT_CHARS;
  for (const word of command) {
    if (left <= 0) return [...kept, '…'];
    kept.push(shorten(word, left));
    left -= word.length + 1;
  }
  return kept;
}
