import { BrokenAnswer } from './model-error.ts';

/** No server says this much in one event; a line without an end must not fill the memory. */
const LONGEST_LINE = 16 * 1024 * 1024;

/** Reads server-sent events from pieces of text, and calls back with the data of each event. */
export class EventData {
  readonly #onData: (data: string) => void;
  #rest = '';
  #data: string | null = null;

  constructor(onData: (data: string) => void) {
    this.#onData = onData;
  }

  push(text: string): void {
    const searched = this.#rest.length;
    const all = searched === 0 ? text : this.#rest + text;
    let from = 0;
    for (let end = all.indexOf('\n', searched); end !== -1; end = all.indexOf('\n', from)) {
      this.#line(all.slice(from, all.charCodeAt(end - 1) === CARRIAGE_RETURN ? end - 1 : end));
      from = end + 1;
    }
    this.#rest = from === 0 ? all : all.slice(from);
    if (this.#rest.length > LONGEST_LINE) throw new BrokenAnswer('a line has no end');
  }

  /** The stream is over: what was not closed by an empty line counts too. */
  end(): void {
    if (this.#rest !== '') this.#line(this.#rest);
    this.#rest = '';
    this.#line('');
  }

  #line(line: string): void {
    if (line === '') {
      const data = this.#data;
      this.#data = null;
      if (data !== null) this.#onData(data);
    } else if (line.startsWith('data:')) {
      const value = line.slice(line.charCodeAt(5) === SPACE ? 6 : 5);
      this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
    }
  }
}

const CARRIAGE_RETURN = 13;
const SPACE = 32;
