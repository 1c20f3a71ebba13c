import type { Readable } from 'node:stream';
import type { Timers } from '../../queue/timers.ts';

const WINDOW_MS = 1000;

export interface LineLimits {
  readonly longestBytes: number;
  /** One that writes more is read slower, and so slowed down itself. */
  readonly bytesPerSecond: number;
}

export interface LineReader {
  /** Whether a line is wanted now; what is not is counted and never decoded. */
  readonly wants?: () => boolean;
  readonly take: (line: string) => void;
  /** A line is longer than it may be: nothing more is read then. Without this it is cut. */
  readonly tooLong?: () => void;
}

/** Reads lines at a bounded pace, and keeps no more of a line than it may be long. */
export function readLines(source: Readable, limits: LineLimits, reader: LineReader): void {
  const { longestBytes, bytesPerSecond } = limits;
  let parts: Buffer[] = [];
  let size = 0;
  let bytes = 0;
  let pause: NodeJS.Timeout | null = null;
  const window = setInterval(() => {
    if (pause === null) bytes = 0;
  }, WINDOW_MS).unref();
  const add = (piece: Buffer): void => {
    if (size < longestBytes) parts.push(piece.subarray(0, longestBytes - size));
    size += piece.length;
    if (size <= longestBytes || reader.tooLong === undefined) return;
    [parts, size] = [[], 0];
    source.destroy();
    reader.tooLong();
  };
  const flush = (): void => {
    if (reader.wants?.() ?? true) reader.take(Buffer.concat(parts).toString());
    [parts, size] = [[], 0];
  };
  source.on('data', (chunk: Buffer) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, at));
      flush();
      from = at + 1;
    }
    if (from < chunk.length) add(chunk.subarray(from));
    bytes += chunk.length;
    if (bytes <= bytesPerSecond || pause !== null) return;
    source.pause();
    pause = setTimeout(() => {
      [pause, bytes] = [null, 0];
      source.resume();
    }, WINDOW_MS).unref();
  });
  source.on('error', () => undefined); // Its process is gone, which says it all.
  source.on('close', () => {
    clearInterval(window);
    if (size > 0) flush();
  });
}

const LINES_PER_WINDOW = 100;

/** Lets a hundred lines a second pass, and says afterwards how many were left out. True for a line that may pass. */
export function lineBudget(timers: Timers, leftOut: (lines: number) => void): () => boolean {
  let since = Number.NEGATIVE_INFINITY;
  let passed = 0;
  let missing = 0;
  const open = (): void => {
    if (missing > 0) leftOut(missing);
    [since, passed, missing] = [timers.elapsed(), 0, 0];
  };
  return () => {
    if (timers.elapsed() - since >= WINDOW_MS) open();
    if (++passed <= LINES_PER_WINDOW) return true;
    // Reported also when nothing more is written.
    if (++missing === 1) timers.after(WINDOW_MS, open);
    return false;
  };
}
