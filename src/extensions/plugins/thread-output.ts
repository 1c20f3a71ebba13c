import { inspect } from 'node:util';
import type { PluginLog } from './api.ts';
import type { Level } from './protocol.ts';

const LINES_PER_WINDOW = 100;
const WINDOW_MS = 1000;
const LONGEST_LINE = 2000;
const LONGEST_FIELDS = 4000;

type Post = (level: Level, message: string, fields: object) => void;

/**
 * What a plugin's thread writes, for the gateway's log: a hundred lines a second at most. It is held back here and not by
 * the reader, for a thread that floods its reader with messages holds up the gateway.
 */
export class ThreadOutput {
  readonly #post: Post;
  #windowStart = Number.NEGATIVE_INFINITY;
  #written = 0;
  #leftOut = 0;

  constructor(post: Post) {
    this.#post = post;
  }

  /** Takes what is written to a stream of the thread, instead of the stream. */
  capture(stream: NodeJS.WriteStream, name: 'stdout' | 'stderr'): void {
    let rest = '';
    const write = (chunk: unknown, ...more: unknown[]): boolean => {
      const lines = (rest + (chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : String(chunk))).split('\n');
      rest = (lines.pop() ?? '').slice(0, LONGEST_LINE + 1);
      for (const line of lines) this.#say('info', 'a plugin says', { stream: name, line: cut(line) });
      const done = more.at(-1);
      if (typeof done === 'function') queueMicrotask(() => done());
      return true;
    };
    stream.write = write as typeof stream.write;
  }

  get log(): PluginLog {
    const writer =
      (level: Level) =>
      (message: string, fields: Readonly<Record<string, unknown>> = {}): void =>
        this.#say(level, cut(String(message)), plain(fields));
    return { debug: writer('debug'), info: writer('info'), warn: writer('warn'), error: writer('error') };
  }

  #say(level: Level, message: string, fields: object): void {
    if (performance.now() - this.#windowStart >= WINDOW_MS) this.#openWindow();
    if (++this.#written <= LINES_PER_WINDOW) this.#post(level, message, fields);
    // Reported also when nothing more is written.
    else if (++this.#leftOut === 1) setTimeout(() => this.#openWindow(), WINDOW_MS).unref();
  }

  #openWindow(): void {
    if (this.#leftOut > 0) {
      this.#post('warn', 'a plugin writes too much; lines were left out', { lines: this.#leftOut });
    }
    [this.#windowStart, this.#written, this.#leftOut] = [performance.now(), 0, 0];
  }
}

function cut(line: string): string {
  return line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line;
}

/** Whatever it is, as something that can be sent, and not too long. */
function plain(fields: unknown): object {
  try {
    const text = JSON.stringify(fields, (_, value) => (value instanceof Error ? value.stack : value));
    if (text !== undefined && text.length <= LONGEST_FIELDS) return JSON.parse(text) as object;
  } catch {
    // It refers to itself, or cannot be told in JSON: then as a person would see it.
  }
  return { fields: cut(inspect(fields, { depth: 2 })) };
}
