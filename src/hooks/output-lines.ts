import type { Readable } from 'node:stream';
import type { Logger } from '../log/logger.ts';

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

/** A sink that writes to the log, a hundred lines a second and hook at most; how many were left out is said. */
export function logLines(log: Logger, elapsed: () => number): LineSink {
  let windowStart = Number.NEGATIVE_INFINITY;
  let written = 0;
  let leftOut = 0;
  return (stream, line) => {
    if (elapsed() - windowStart >= WINDOW_MS) {
      if (leftOut > 0) log.warn('a hook writes too much; lines were left out', { lines: leftOut });
      [windowStart, written, leftOut] = [elapsed(), 0, 0];
    }
    if (++written <= LINES_PER_WINDOW) log.info('a hook says', { stream, line });
    else leftOut++;
  };
}
