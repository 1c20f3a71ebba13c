import { appendFileSync, chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const KEPT = 1000;
/** Longer texts are pasted, not typed: they are not kept for the arrow keys. */
const LONGEST = 10_000;

/** What was typed before, in this terminal and others: one JSON string a line, for its owner only. */
export class History {
  readonly #file: string;
  readonly #entries: string[];

  constructor(home: string) {
    this.#file = join(home, 'chat_history');
    const entries = readEntries(this.#file);
    this.#entries = entries.slice(-KEPT);
    if (entries.length > 2 * KEPT) this.#shorten();
  }

  /** Oldest first. */
  get entries(): readonly string[] {
    return this.#entries;
  }

  add(text: string): void {
    if (text.length > LONGEST || text === this.#entries.at(-1)) return;
    this.#entries.push(text);
    try {
      // Added to the end, never written anew: another terminal does the same.
      appendFileSync(this.#file, `${JSON.stringify(text)}\n`, { mode: 0o600 });
    } catch {
      // A home that cannot be written to is reported by the store.
    }
  }

  #shorten(): void {
    const fresh = `${this.#file}.${process.pid}`;
    try {
      writeFileSync(fresh, this.#entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''), { mode: 0o600 });
      renameSync(fresh, this.#file);
    } catch {
      // The next terminal tries again.
    }
  }
}

function readEntries(file: string): string[] {
  try {
    chmodSync(file, 0o600); // It may have been made by hand.
    return readFileSync(file, 'utf8').split('\n').flatMap(parseEntry);
  } catch {
    return []; // There is none yet.
  }
}

function parseEntry(line: string): string[] {
  try {
    const entry: unknown = JSON.parse(line);
    return typeof entry === 'string' && entry !== '' ? [entry] : [];
  } catch {
    return []; // Half a line, of a terminal that was killed while writing.
  }
}
