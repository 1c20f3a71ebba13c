const segmenter = new Intl.Segmenter();
/** Looked through for the beginning of a word. */
const LONGEST_WORD = 500;

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

  backspace(): void {
    this.#splice(this.#before(), this.#cursor, '');
  }

  deleteRight(): void {
    this.#splice(this.#cursor, this.#after(), '');
  }

  deleteWord(): void {
    this.#splice(this.#wordBefore(), this.#cursor, '');
  }

  deleteToStart(): void {
    this.#splice(this.#lineStart(), this.#cursor, '');
  }

  deleteToEnd(): void {
    this.#splice(this.#cursor, this.#lineEnd(), '');
  }

  left(): void {
    this.#cursor = this.#before();
  }

  right(): void {
    this.#cursor = this.#after();
  }

  wordLeft(): void {
    this.#cursor = this.#wordBefore();
  }

  wordRight(): void {
    const word = /^[^\p{L}\p{N}]*[\p{L}\p{N}]*/u.exec(this.#text.slice(this.#cursor))?.[0] ?? '';
    this.#cursor += word.length;
  }

  home(): void {
    this.#cursor = this.#lineStart();
  }

  end(): void {
    this.#cursor = this.#lineEnd();
  }

  /** To the line above; false when there is none. */
  up(): boolean {
    const start = this.#lineStart();
    if (start === 0) return false;
    const column = this.#cursor - start;
    const above = start < 2 ? 0 : this.#text.lastIndexOf('\n', start - 2) + 1;
    this.#cursor = Math.min(above + column, start - 1);
    return true;
  }

  /** To the line below; false when there is none. */
  down(): boolean {
    const end = this.#lineEnd();
    if (end === this.#text.length) return false;
    const column = this.#cursor - this.#lineStart();
    const next = this.#text.indexOf('\n', end + 1);
    this.#cursor = Math.min(end + 1 + column, next < 0 ? this.#text.length : next);
    return true;
  }

  #splice(from: number, to: number, text: string): void {
    this.#text = this.#text.slice(0, from) + text + this.#text.slice(to);
    this.#cursor = from + text.length;
  }

  #lineStart(): number {
    return this.#cursor === 0 ? 0 : this.#text.lastIndexOf('\n', this.#cursor - 1) + 1;
  }

  #lineEnd(): number {
    const end = this.#text.indexOf('\n', this.#cursor);
    return end < 0 ? this.#text.length : end;
  }

  /** One character to the left, as people count them. */
  #before(): number {
    const start = this.#lineStart();
    if (this.#cursor === start) return Math.max(0, start - 1);
    const last = [...segmenter.segment(this.#text.slice(start, this.#cursor))].at(-1);
    return start + (last?.index ?? 0);
  }

  #after(): number {
    const end = this.#lineEnd();
    if (this.#cursor === end) return Math.min(end + 1, this.#text.length);
    const [first] = segmenter.segment(this.#text.slice(this.#cursor, end));
    return this.#cursor + (first?.segment.length ?? 0);
  }

  #wordBefore(): number {
    const line = this.#text.slice(Math.max(0, this.#cursor - LONGEST_WORD), this.#cursor);
    const word = /[\p{L}\p{N}]*[^\p{L}\p{N}]*$/u.exec(line)?.[0] ?? '';
    return this.#cursor - word.length;
  }
}
