const segmenter = new Intl.Segmenter();
/** Looked through for the beginning of a word. */
const LONGEST_WORD = 500;

const isLetter = (sign: string): boolean => /[\p{L}\p{N}]/u.test(sign);

export type Move = 'home' | 'end' | 'left' | 'right' | 'wordLeft' | 'wordRight';

/** Where the cursor goes from where it stands; `left` and `right` are characters as people count them. */
const MOVES: Readonly<Record<Move, (text: string, cursor: number) => number>> = {
  home: (text, cursor) => (cursor === 0 ? 0 : text.lastIndexOf('\n', cursor - 1) + 1),
  end: (text, cursor) => {
    const end = text.indexOf('\n', cursor);
    return end < 0 ? text.length : end;
  },
  left: (text, cursor) => {
    const start = MOVES.home(text, cursor);
    if (cursor === start) return Math.max(0, start - 1);
    const last = [...segmenter.segment(text.slice(start, cursor))].at(-1);
    return start + (last?.index ?? 0);
  },
  right: (text, cursor) => {
    const end = MOVES.end(text, cursor);
    if (cursor === end) return Math.min(end + 1, text.length);
    const [first] = segmenter.segment(text.slice(cursor, end));
    return cursor + (first?.segment.length ?? 0);
  },
  wordLeft: (text, cursor) => {
    const signs = [...text.slice(Math.max(0, cursor - LONGEST_WORD), cursor)];
    const letter = signs.findLastIndex(isLetter);
    const before = signs.slice(0, Math.max(letter, 0)).findLastIndex((sign) => !isLetter(sign));
    return cursor - signs.slice(before + 1).join('').length;
  },
  wordRight: (text, cursor) => cursor + (/^[^\p{L}\p{N}]*[\p{L}\p{N}]*/u.exec(text.slice(cursor))?.[0].length ?? 0),
};

/** Some text with a cursor in it, as it is being typed; it may have several lines. */
export class LineEditor {
  #text = '';
  #cursor = 0;

  get text(): string {
    return this.#text;
  }

  /** Before which character the cursor stands. */
  get cursor(): number {
    return this.#cursor;
  }

  /** Replaces everything; the cursor goes to the end. */
  set(text: string): void {
    this.#text = text;
    this.#cursor = text.length;
  }

  /** Line breaks of every kind are taken, other control characters are not: they are never meant. */
  insert(text: string): void {
    const clean = text.replace(/\r\n?/g, '\n').replace(/[^\P{Cc}\n\t]/gu, '');
    this.#splice(this.#cursor, this.#cursor, clean);
  }

  move(move: Move): void {
    this.#cursor = MOVES[move](this.#text, this.#cursor);
  }

  /** Deletes what the cursor would have moved over. */
  delete(move: Move): void {
    const to = MOVES[move](this.#text, this.#cursor);
    this.#splice(Math.min(to, this.#cursor), Math.max(to, this.#cursor), '');
  }

  /** To the line above; false when there is none. */
  up(): boolean {
    const start = MOVES.home(this.#text, this.#cursor);
    if (start === 0) return false;
    const above = MOVES.home(this.#text, start - 1);
    this.#cursor = Math.min(above + this.#cursor - start, start - 1);
    return true;
  }

  /** To the line below; false when there is none. */
  down(): boolean {
    const end = MOVES.end(this.#text, this.#cursor);
    if (end === this.#text.length) return false;
    const column = this.#cursor - MOVES.home(this.#text, this.#cursor);
    this.#cursor = Math.min(end + 1 + column, MOVES.end(this.#text, end + 1));
    return true;
  }

  #splice(from: number, to: number, text: string): void {
    this.#text = this.#text.slice(0, from) + text + this.#text.slice(to);
    this.#cursor = from + text.length;
  }
}
