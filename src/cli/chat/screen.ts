import { printable, widthOf } from '../print.ts';

/** Where a screen is drawn: a terminal. One that does not know its size says 0, or nothing. */
export interface Display {
  readonly columns: number;
  readonly rows: number;
  write(text: string): unknown;
}

const ERASE_DOWN = '\u001b[J';
const CLEAR = '\u001b[H\u001b[2J';

/**
 * A terminal in which text appears above a line that is being typed. While nothing is typed, text is shown as it comes;
 * above an input it is shown by whole lines, so that the two never mix.
 */
export class Screen {
  readonly #display: Display;
  #input: Input | null = null;
  /** Which row of the drawn input the cursor is in. */
  #cursorRow = 0;
  /** The beginning of a line that waits for its end, above an input. */
  #held = '';
  #midLine = false;

  constructor(display: Display) {
    this.#display = display;
  }

  /** Shows text, which must not act on the terminal but for its own line breaks and colours. */
  say(text: string): void {
    if (this.#input === null) this.#write(text);
    else this.#sayAbove(this.#input, text);
  }

  /** Shows a line of its own, whatever stood before it. */
  line(text: string): void {
    this.endLine();
    this.say(`${text}\n`);
  }

  /** What comes next begins a line. */
  endLine(): void {
    const open = this.#input === null ? this.#midLine : this.#held !== '';
    if (open) this.say('\n');
  }

  /** Shows what is being typed; null takes it away. */
  show(input: Input | null): void {
    if (this.#input !== null) this.#erase();
    else if (input !== null && this.#midLine) this.#write('\n');
    this.#input = input;
    if (input !== null) this.#draw(input);
    else this.#release();
  }

  /** Leaves what was typed where it stands, as a message that was sent. */
  commit(): void {
    const input = this.#input;
    if (input === null) return;
    this.#erase();
    this.#input = null;
    const { rows } = layOut({ ...input, cursor: input.text.length }, this.#columns(), Number.POSITIVE_INFINITY);
    this.#write(`${rows.join('\n')}\n`);
    this.#release();
  }

  /** Begins at the top of an empty screen. */
  clear(): void {
    const input = this.#input;
    this.#display.write(CLEAR);
    this.#cursorRow = 0;
    this.#midLine = false;
    if (input !== null) this.#draw(input);
  }

  /** The terminal has another size. */
  resized(): void {
    if (this.#input !== null) this.show(this.#input);
  }

  #sayAbove(input: Input, text: string): void {
    const whole = this.#held + text;
    const end = whole.lastIndexOf('\n') + 1;
    this.#held = whole.slice(end);
    if (end === 0) return;
    this.#erase();
    this.#write(whole.slice(0, end));
    this.#draw(input);
  }

  #release(): void {
    const held = this.#held;
    this.#held = '';
    if (held !== '') this.#write(held);
  }

  #draw(input: Input): void {
    const { rows, row, column } = layOut(input, this.#columns(), Math.max(1, (this.#display.rows || 24) - 1));
    const up = rows.length - 1 - row;
    this.#display.write(
      `${rows.join('\r\n')}${up > 0 ? `\u001b[${up}A` : ''}\r${column > 0 ? `\u001b[${column}C` : ''}`,
    );
    this.#cursorRow = row;
  }

  #erase(): void {
    const up = this.#cursorRow > 0 ? `\u001b[${this.#cursorRow}A` : '';
    this.#display.write(`${up}\r${ERASE_DOWN}`);
    this.#cursorRow = 0;
  }

  #write(text: string): void {
    if (text === '') return;
    this.#display.write(text);
    this.#midLine = !text.endsWith('\n');
  }

  #columns(): number {
    return Math.max(8, this.#display.columns || 80);
  }
}

/** What is being typed, behind its prompt. */
export interface Input {
  readonly prompt: string;
  readonly text: string;
  readonly cursor: number;
}

/** The rows of a terminal that show it, and where the cursor stands in them. */
interface InputLayout {
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
