import { emitKeypressEvents } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';

/** What was pressed, by a name: `a`, `return`, `up`, `ctrl-c`, `meta-left`. */
export interface Press {
  readonly name: string;
  /** What it would add to a text; empty for what only acts. */
  readonly text: string;
}

export interface KeyboardListener {
  pressed(press: Press): void;
  /** Some text was put in at once, maybe of several lines. */
  pasted(text: string): void;
  /** The terminal is gone. */
  gone(): void;
  /** The process was stopped and goes on: the screen may show anything. */
  back(): void;
}

interface Key {
  readonly name?: string;
  readonly sequence?: string;
  readonly ctrl?: boolean;
  readonly meta?: boolean;
}

/** After a stop; long enough for the signal to arrive. */
const RETURN_MS = 100;

const PASTE_ON = '\u001b[?2004h';
const PASTE_OFF = '\u001b[?2004l';

/** The keys of a terminal, one by one. Whatever ends this process, the terminal is given back as it was. */
export class Keyboard {
  readonly #input: ReadStream;
  readonly #output: Pick<WriteStream, 'write'>;
  readonly #listener: KeyboardListener;
  #paste: string[] | null = null;
  #closed = false;
  readonly #onKey = (text: string | undefined, key: Key): void => this.#key(text ?? '', key);
  readonly #onGone = (): void => this.#listener.gone();
  readonly #onContinue = (): void => {
    this.#take();
    this.#listener.back();
  };
  readonly #giveBack = (): void => {
    this.#output.write(PASTE_OFF);
    // A terminal that is gone cannot be set any more.
    if (!this.#input.destroyed) this.#input.setRawMode(false);
  };

  constructor(input: ReadStream, output: Pick<WriteStream, 'write'>, listener: KeyboardListener) {
    this.#input = input;
    this.#output = output;
    this.#listener = listener;
  }

  open(): void {
    emitKeypressEvents(this.#input);
    this.#input.on('keypress', this.#onKey).on('end', this.#onGone).on('close', this.#onGone).on('error', this.#onGone);
    process.on('SIGCONT', this.#onContinue).on('exit', this.#giveBack);
    this.#take();
    this.#input.resume();
  }

  close(): void {
    this.#closed = true;
    this.#input.off('keypress', this.#onKey).off('end', this.#onGone).off('close', this.#onGone);
    process.off('SIGCONT', this.#onContinue).off('exit', this.#giveBack);
    this.#giveBack();
    this.#input.pause();
  }

  /** Ctrl-Z: the whole job stops, as it does where the terminal itself handles that key. */
  suspend(): void {
    this.#giveBack();
    process.kill(0, 'SIGTSTP');
    // Where there is no shell to go back to, nothing stops, and nothing would tell us to go on.
    setTimeout(this.#onContinue, RETURN_MS).unref();
  }

  #take(): void {
    if (this.#input.destroyed || this.#closed) return;
    this.#input.setRawMode(true);
    this.#output.write(PASTE_ON);
  }

  #key(text: string, key: Key): void {
    if (key.name === 'paste-start') this.#paste = [];
    else if (key.name === 'paste-end') this.#endPaste();
    else if (this.#paste !== null) this.#paste.push(key.sequence ?? text);
    else this.#listener.pressed({ name: nameOf(text, key), text: isTyped(text, key) ? text : '' });
  }

  #endPaste(): void {
    const pasted = this.#paste?.join('') ?? '';
    this.#paste = null;
    this.#listener.pasted(pasted);
  }
}

function nameOf(text: string, { name = text, ctrl, meta }: Key): string {
  return `${ctrl ? 'ctrl-' : ''}${meta ? 'meta-' : ''}${name}`;
}

function isTyped(text: string, { ctrl, meta }: Key): boolean {
  return !ctrl && !meta && !/\p{Cc}/u.test(text);
}
