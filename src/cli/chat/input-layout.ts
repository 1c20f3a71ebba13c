import { printable, widthOf } from '../print.ts';

/** What is being typed, behind its prompt. */
export interface Input {
  readonly prompt: string;
  readonly text: string;
  readonly cursor: number;
}

/** The rows of a terminal that show it, and where the cursor stands in them. */
export interface InputLayout {
  readonly rows: readonly string[];
  readonly row: number;
  readonly column: number;
}

const TAB = '    ';

/**
 * Breaks the input into rows itself: how a terminal goes on behind its last column differs from one to another. The rows
 * are at most `height`, those around the cursor.
 */
export function layOut({ prompt, text, cursor }: Input, columns: number, height: number): InputLayout {
  const indent = ' '.repeat(widthOf(prompt));
  const rows = [prompt];
  let column = widthOf(prompt);
  let at: { row: number; column: number } | null = null;
  const breakRow = (beginning: string): void => {
    rows.push(beginning);
    column = widthOf(beginning);
  };
  let index = 0;
  for (const character of text) {
    if (index >= cursor && at === null) at = { row: rows.length - 1, column };
    index += character.length;
    if (character === '\n') {
      breakRow(indent);
      continue;
    }
    const shown = character === '\t' ? TAB : printable(character);
    if (column + widthOf(shown) > columns) breakRow('');
    rows[rows.length - 1] += shown;
    column += widthOf(shown);
  }
  at ??= { row: rows.length - 1, column };
  // Behind the last column there is no place for a cursor.
  if (at.column >= columns) {
    if (at.row === rows.length - 1) rows.push('');
    at = { row: at.row + 1, column: 0 };
  }
  const first = Math.max(0, Math.min(at.row - Math.floor(height / 2), rows.length - height));
  return { rows: rows.slice(first, first + height), row: at.row - first, column: at.column };
}
