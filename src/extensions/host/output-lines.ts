import type { Readable } from 'node:stream';

/** Where the words of a handler go, line by line. */
export type LineSink = (stream: 'stdout' | 'stderr', line: string) => void;

const LONGEST_LINE = 2000;
const WINDOW_MS = 1000;
const BYTES_PER_WINDOW = 1024 * 1024;

/**
 * Reads what a handler writes, at a bounded pace: one that writes without end is slowed down, and not the gateway. Lines
 * are cut at 2000 characters.
 */
export function readLines(source: Readable, take: (line: string) => void): void {
  const decoder = new TextDecoder();
  let rest = '';
  let bytes = 0;
  let pause: NodeJS.Timeout | null = null;
  const slowDown = (): void => {
    source.pause();
    pause ??= setTimeout(() => {
      [pause, bytes] = [null, 0];
      source.resume();
    }, WINDOW_MS);
    pause.unref();
  };
  const window = setInterval(() => {
    if (pause === null) bytes = 0;
  }, WINDOW_MS);
  window.unref();
  source.on('data', (chunk: Buffer) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = (lines.pop() ?? '').slice(0, LONGEST_LINE + 1);
    for (const line of lines) take(cut(line));
    bytes += chunk.length;
    if (bytes > BYTES_PER_WINDOW) slowDown();
  });
  source.on('error', () => undefined); // Its process is gone, which says it all.
  source.on('close', () => {
    clearInterval(window);
    if (rest !== '') take(cut(rest));
  });
}

function cut(line: string): string {
  return line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line;
}

const LINES_PER_WINDOW = 100;

/** A sink that passes on a hundred lines a second at most, and then says how many were left out. */
export function boundedLines(elapsed: () => number, pass: LineSink, leftOut: (lines: number) => void): LineSink {
  let windowStart = Number.NEGATIVE_INFINITY;
  let written = 0;
  let missing = 0;
  return (stream, line) => {
    if (elapsed() - windowStart >= WINDOW_MS) {
      if (missing > 0) leftOut(missing);
      [windowStart, written, missing] = [elapsed(), 0, 0];
    }
    if (++written <= LINES_PER_WINDOW) pass(stream, line);
    else missing++;
  };
}
