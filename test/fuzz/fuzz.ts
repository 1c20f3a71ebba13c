import { MoiraiError } from '../../src/errors/moirai-error.ts';
import { PARSERS } from './parsers.ts';
import { Texts } from './texts.ts';

/** No text may keep everybody else waiting for longer. */
export const LIMIT_MS = 50;
/** A parse that seems too slow is measured again: collecting garbage is not its fault. */
const TRIES = 4;

export interface Slowest {
  readonly ms: number;
  readonly length: number;
  readonly text: string;
}

export interface FuzzResult {
  readonly texts: number;
  readonly characters: number;
  readonly slowest: ReadonlyMap<string, Slowest>;
  /** Errors without a code: nobody expects those. */
  readonly thrown: readonly string[];
  /** What was held in the middle and at the end, in bytes. */
  readonly memory: readonly [number, number];
}

/** Has every parser read that many texts. Time is that of this thread alone, whatever else the machine does. */
export function fuzz(count: number, seed: number, progress: (texts: number) => void = () => undefined): FuzzResult {
  const texts = new Texts(seed);
  const slowest = new Map<string, Slowest>();
  const thrown: string[] = [];
  let characters = 0;
  let early = 0;
  for (let index = 0; index < count; index += 1) {
    const text = texts.next();
    characters += text.length;
    for (const [name, parse] of Object.entries(PARSERS)) {
      const ms = timeOf(
        () => parse(text),
        (error) => thrown.push(`${name}: ${error}: ${JSON.stringify(text.slice(0, 200))}`),
      );
      if (ms > (slowest.get(name)?.ms ?? 0)) slowest.set(name, { ms, length: text.length, text: text.slice(0, 60) });
    }
    if (index === Math.floor(count / 2)) early = heap();
    if (index % 10_000 === 9999) progress(index + 1);
  }
  return { texts: count, characters, slowest, thrown, memory: [early, heap()] };
}

function timeOf(parse: () => unknown, failed: (error: unknown) => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && least > LIMIT_MS / 2; tries += 1) {
    const before = process.threadCpuUsage();
    try {
      parse();
    } catch (error) {
      if (!(error instanceof MoiraiError)) failed(error);
    }
    const { user, system } = process.threadCpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

function heap(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

/** One line for each parser, the slowest first. */
export function describeFuzz({ texts, characters, slowest, memory }: FuzzResult): string[] {
  const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  const lines = [...slowest].sort(([, a], [, b]) => b.ms - a.ms);
  return [
    `${texts} texts, ${(characters / 1e6).toFixed(0)} million characters, held: ${memory.map(megabytes).join(', then ')}`,
    ...lines.map(
      ([name, { ms, length, text }]) => `${ms.toFixed(1)} ms  ${name}  (${length}: ${JSON.stringify(text)})`,
    ),
  ];
}
