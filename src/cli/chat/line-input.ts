import { complete } from './completion.ts';
import type { History } from './history.ts';
import type { Press } from './keyboard.ts';
import { LineEditor } from './line-editor.ts';

/** The keys that change what is being typed, as in every shell. */
const EDITS: Readonly<Record<string, (editor: LineEditor) => void>> = {
  left: (editor) => editor.left(),
  right: (editor) => editor.right(),
  home: (editor) => editor.home(),
  end: (editor) => editor.end(),
  backspace: (editor) => editor.backspace(),
  delete: (editor) => editor.deleteRight(),
  'ctrl-a': (editor) => editor.home(),
  'ctrl-e': (editor) => editor.end(),
  'ctrl-b': (editor) => editor.left(),
  'ctrl-f': (editor) => editor.right(),
  'ctrl-d': (editor) => editor.deleteRight(),
  'ctrl-h': (editor) => editor.backspace(),
  'ctrl-k': (editor) => editor.deleteToEnd(),
  'ctrl-u': (editor) => editor.deleteToStart(),
  'ctrl-w': (editor) => editor.deleteWord(),
  'meta-backspace': (editor) => editor.deleteWord(),
  'ctrl-left': (editor) => editor.wordLeft(),
  'ctrl-right': (editor) => editor.wordRight(),
  'meta-b': (editor) => editor.wordLeft(),
  'meta-f': (editor) => editor.wordRight(),
  // Enter sends; these break the line.
  enter: (editor) => editor.insert('\n'),
  'meta-return': (editor) => editor.insert('\n'),
};

/** A message being typed: what it says so far, and the earlier ones it can be taken from. */
export class LineInput {
  readonly #editor = new LineEditor();
  readonly #history: History;
  /** Which earlier message is shown; one behind the last is what is being typed now. */
  #position: number;
  #draft = '';

  constructor(history: History) {
    this.#history = history;
    this.#position = history.entries.length;
  }

  get text(): string {
    return this.#editor.text;
  }

  get cursor(): number {
    return this.#editor.cursor;
  }

  /** Does what a key says. Returns what a Tab could have meant, where that is not clear. */
  press({ name, text }: Press): readonly string[] {
    const edit = EDITS[name];
    if (edit !== undefined) edit(this.#editor);
    else if (name === 'up' || name === 'ctrl-p') this.#older();
    else if (name === 'down' || name === 'ctrl-n') this.#newer();
    else if (name === 'tab') return this.#complete();
    else if (text !== '') this.#editor.insert(text);
    return [];
  }

  paste(text: string): void {
    this.#editor.insert(text);
  }

  /** Begins anew, or with what was put aside. */
  set(text: string): void {
    this.#editor.set(text);
    this.#position = this.#history.entries.length;
    this.#draft = '';
  }

  #older(): void {
    if (this.#editor.up() || this.#position === 0) return;
    if (this.#position === this.#history.entries.length) this.#draft = this.text;
    this.#position--;
    this.#editor.set(this.#history.entries[this.#position] ?? '');
  }

  #newer(): void {
    if (this.#editor.down() || this.#position === this.#history.entries.length) return;
    this.#position++;
    this.#editor.set(this.#history.entries[this.#position] ?? this.#draft);
  }

  #complete(): readonly string[] {
    const completion = this.cursor === this.text.length ? complete(this.text) : null;
    if (completion === null) return [];
    const { text, choices } = completion;
    const furthered = text !== this.text;
    this.#editor.set(text);
    return furthered ? [] : choices;
  }
}
