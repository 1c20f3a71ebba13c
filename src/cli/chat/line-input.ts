import { COMMANDS } from '../../commands/catalogue.ts';
import type { History } from './history.ts';
import type { Press } from './keyboard.ts';
import { LineEditor, type Move } from './line-editor.ts';

/** The keys that move the cursor, as in every shell. */
const MOVES: Readonly<Record<string, Move>> = {
  left: 'left',
  right: 'right',
  home: 'home',
  end: 'end',
  'ctrl-a': 'home',
  'ctrl-e': 'end',
  'ctrl-b': 'left',
  'ctrl-f': 'right',
  'ctrl-left': 'wordLeft',
  'ctrl-right': 'wordRight',
  'meta-b': 'wordLeft',
  'meta-f': 'wordRight',
};

/** The keys that delete, and up to where. */
const DELETIONS: Readonly<Record<string, Move>> = {
  backspace: 'left',
  delete: 'right',
  'ctrl-d': 'right',
  'ctrl-h': 'left',
  'ctrl-k': 'end',
  'ctrl-u': 'home',
  'ctrl-w': 'wordLeft',
  'meta-backspace': 'wordLeft',
};

/** Commands of the terminal itself, beside those of every platform. */
export const LEAVING: readonly string[] = ['quit', 'exit'];

const COMMAND_NAMES = [...COMMANDS.flatMap(({ name, aliases = [] }) => [name, ...aliases]), ...LEAVING].map(
  (name) => `/${name}`,
);

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
    const move = MOVES[name];
    const deletion = DELETIONS[name];
    if (move !== undefined) this.#editor.move(move);
    else if (deletion !== undefined) this.#editor.delete(deletion);
    // Enter sends; these break the line.
    else if (name === 'enter' || name === 'meta-return') this.#editor.insert('\n');
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

  /** Completes the name of a slash command as far as there is no doubt. */
  #complete(): readonly string[] {
    const { text } = this;
    if (this.cursor !== text.length || !/^\/[a-z0-9_-]*$/i.test(text)) return [];
    const choices = COMMAND_NAMES.filter((name) => name.startsWith(text.toLowerCase())).sort();
    const [only] = choices;
    if (only === undefined) return [];
    const completed = choices.length === 1 ? `${only} ` : choices.reduce(commonBeginning);
    this.#editor.set(completed);
    return choices.length === 1 || completed !== text ? [] : choices;
  }
}

function commonBeginning(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}
