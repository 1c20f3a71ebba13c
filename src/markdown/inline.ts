import { linkTargetAt, urlEndAt } from './links.ts';

/** The words of one line, with what is marked in them. */
export type Inline =
  | string
  | { readonly type: 'strong' | 'em' | 'del'; readonly inside: readonly Inline[] }
  | { readonly type: 'code'; readonly text: string }
  | InlineLink;

export interface InlineLink {
  readonly type: 'link';
  readonly address: string;
  /** As it was written. */
  readonly source: string;
  readonly inside: readonly Inline[];
}

/**
 * Reads one line of Markdown in time that grows with its length and no faster: where code, brackets and emphasis end is
 * found out once for the whole line, and each character is then read once.
 */
export function parseInline(line: string): Inline[] {
  return new InlineParser(line).parse(0, line.length, { inLink: false, depth: 0 });
}

/** Marks inside deeper ones are text: nobody writes them, and a parser must not run out of stack. */
const DEEPEST = 12;

type Emphasis = 'strong' | 'em' | 'del';

const EMPHASES: readonly (readonly [mark: string, types: readonly Emphasis[]])[] = [
  ['***', ['strong', 'em']],
  ['___', ['strong', 'em']],
  ['**', ['strong']],
  ['__', ['strong']],
  ['~~', ['del']],
  ['*', ['em']],
  ['_', ['em']],
];

interface Run {
  readonly start: number;
  readonly end: number;
}

interface Within {
  /** Links hold no links. */
  readonly inLink: boolean;
  readonly depth: number;
}

interface Span {
  readonly parts: readonly Inline[];
  readonly end: number;
}

class InlineParser {
  readonly #text: string;
  /** Where code that begins here ends, its marks included. */
  readonly #codeEnds = new Map<number, number>();
  /** Behind the bracket that closes the one that opens here. */
  readonly #bracketEnds = new Map<number, number>();
  /** Addresses that stand in the text by themselves. */
  readonly #urlEnds = new Map<number, number>();
  /** Marks of emphasis side by side, in order. */
  readonly #runs: Run[] = [];
  /** Those that can close a mark. */
  readonly #closers = new Map<string, Run[]>(EMPHASES.map(([mark]) => [mark, []]));

  constructor(text: string) {
    this.#text = text;
    this.#findEnds();
  }

  #findEnds(): void {
    const text = this.#text;
    const special = /[\\`*_~[\]]|https?:\/\//g;
    const ticks = new TickRuns(text);
    const open: number[] = [];
    for (let found = special.exec(text); found !== null; found = special.exec(text)) {
      const { index: at } = found;
      const sign = text.charAt(at);
      if (sign === '\\') special.lastIndex = isEscape(text, at) ? at + 2 : at + 1;
      else if (sign === '[') open.push(at);
      else if (sign === ']') this.#closeBracket(open.pop(), at);
      else if (sign === '`') special.lastIndex = this.#findCode(at, ticks);
      else if (sign === 'h') special.lastIndex = this.#findUrl(at) ?? special.lastIndex;
      else special.lastIndex = this.#addRun(at);
    }
  }

  #closeBracket(open: number | undefined, at: number): void {
    if (open !== undefined) this.#bracketEnds.set(open, at + 1);
  }

  #findCode(at: number, ticks: TickRuns): number {
    const behind = runEnd(this.#text, at);
    const close = ticks.next(behind - at, behind);
    if (close === null) return behind;
    this.#codeEnds.set(at, close);
    return close;
  }

  #findUrl(at: number): number | null {
    const end = urlEndAt(this.#text, at);
    if (end !== null) this.#urlEnds.set(at, end);
    return end;
  }

  #addRun(start: number): number {
    const text = this.#text;
    const run = { start, end: runEnd(text, start) };
    this.#runs.push(run);
    for (const [mark] of EMPHASES) {
      const inWord = isWord(text.charAt(run.end)) && isOnlyBesideWords(mark);
      if (!inWord && this.#fits(run, mark)) this.#closers.get(mark)?.push(run);
    }
    return run.end;
  }

  #fits({ start, end }: Run, mark: string): boolean {
    const length = end - start;
    if (this.#text.charAt(start) !== mark.charAt(0) || length < mark.length) return false;
    // One mark is not closed by two: those open or close something within.
    return !(mark.length === 1 && length === 2) && isVisible(this.#text.charAt(start - 1));
  }

  parse(from: number, to: number, within: Within): Inline[] {
    const text = this.#text;
    const parts: Inline[] = [];
    const special = /[\\`*_~[\]]|!\[|https?:\/\//g;
    for (let at = from; at < to; ) {
      special.lastIndex = at;
      const next = Math.min(special.exec(text)?.index ?? to, to);
      addPart(parts, text.slice(at, next));
      if (next === to) break;
      const span = this.#spanAt(next, from, to, within);
      for (const part of span?.parts ?? [text.charAt(next)]) addPart(parts, part);
      at = span?.end ?? next + 1;
    }
    return parts;
  }

  #spanAt(at: number, from: number, to: number, within: Within): Span | null {
    const text = this.#text;
    if (text.charAt(at) === '\\') {
      return isEscape(text, at) && at + 1 < to ? { parts: [text.charAt(at + 1)], end: at + 2 } : null;
    }
    if (text.charAt(at) === '`') return this.#codeAt(at, to);
    if (text.charAt(at) === 'h') return this.#urlAt(at, to, within);
    return this.#linkAt(at, to, within) ?? this.#emphasisAt(at, from, to, within);
  }

  #codeAt(at: number, to: number): Span {
    const behind = Math.min(runEnd(this.#text, at), to);
    const end = this.#codeEnds.get(at) ?? to + 1;
    if (end > to) return { parts: [this.#text.slice(at, behind)], end: behind };
    const code = this.#text.slice(behind, end - (behind - at));
    const isPadded = code.length > 2 && code.startsWith(' ') && code.endsWith(' ') && code.trim() !== '';
    return { parts: [{ type: 'code', text: isPadded ? code.slice(1, -1) : code }], end };
  }

  #urlAt(at: number, to: number, { inLink }: Within): Span | null {
    const end = this.#urlEnds.get(at) ?? to + 1;
    if (end > to) return null;
    const source = this.#text.slice(at, end);
    return { parts: [inLink ? source : { type: 'link', address: source, source, inside: [source] }], end };
  }

  #linkAt(at: number, to: number, { inLink, depth }: Within): Span | null {
    const open = this.#text.charAt(at) === '!' ? at + 1 : at;
    const close = inLink ? undefined : this.#bracketEnds.get(open);
    const target = close === undefined ? null : linkTargetAt(this.#text, close);
    if (close === undefined || target === null || target.end > to) return null;
    const { address, end } = target;
    const words = this.parse(open + 1, close - 1, { inLink: true, depth });
    const isBlank = this.#text.slice(open + 1, close - 1).trim() === '';
    const source = this.#text.slice(at, end);
    return { parts: [{ type: 'link', address, source, inside: isBlank ? [address] : words }], end };
  }

  #emphasisAt(at: number, from: number, to: number, within: Within): Span | null {
    const text = this.#text;
    if (!'*_~'.includes(text.charAt(at))) return null;
    const behind = Math.min(runEnd(text, at), to);
    for (const [mark, types] of EMPHASES) {
      const start = at + mark.length;
      if (!text.startsWith(mark, at) || behind - at > 3 || start > behind || within.depth >= DEEPEST) continue;
      const inWord = at > from && isWord(text.charAt(at - 1)) && isOnlyBesideWords(mark);
      const end = !inWord && start < to && isVisible(text.charAt(start)) ? this.#closeOf(mark, start, to) : null;
      if (end === null) continue;
      const inside = this.parse(start, end, { ...within, depth: within.depth + 1 });
      const parts = types.reduceRight<Inline[]>((words, type) => [{ type, inside: words }], inside);
      return { parts, end: end + mark.length };
    }
    return { parts: [text.slice(at, behind)], end: behind };
  }

  /** Where the mark that closes an emphasis stands; null if nothing closes it. */
  #closeOf(mark: string, start: number, to: number): number | null {
    const closers = this.#closers.get(mark) ?? [];
    const closer = closers[firstFrom(closers, start + 1)];
    if (closer !== undefined && closer.end < to) return closer.end - mark.length;
    // What is outside of this part does not count: the last marks may end with it.
    const last = this.#runs[firstFrom(this.#runs, to) - 1];
    if (last === undefined || last.start <= start || last.end < to) return null;
    return this.#fits({ start: last.start, end: to }, mark) ? to - mark.length : null;
  }
}

/** Runs of backticks by their length. They are asked for from the front to the back. */
class TickRuns {
  readonly #starts = new Map<number, number[]>();
  readonly #passed = new Map<number, number>();

  constructor(text: string) {
    for (let at = text.indexOf('`'); at >= 0; ) {
      const end = runEnd(text, at);
      const starts = this.#starts.get(end - at) ?? [];
      starts.push(at);
      this.#starts.set(end - at, starts);
      at = text.indexOf('`', end);
    }
  }

  /** Behind the next run of this length; null if there is none. */
  next(length: number, from: number): number | null {
    const starts = this.#starts.get(length) ?? [];
    let index = this.#passed.get(length) ?? 0;
    while (index < starts.length && (starts[index] ?? 0) < from) index += 1;
    this.#passed.set(length, index);
    const start = starts[index];
    return start === undefined ? null : start + length;
  }
}

/** The first of the runs, which are in order, that begins at a place or behind it. */
function firstFrom(runs: readonly Run[], from: number): number {
  let low = 0;
  for (let high = runs.length; low < high; ) {
    const middle = (low + high) >> 1;
    if ((runs[middle]?.start ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

function addPart(parts: Inline[], part: Inline): void {
  const last = parts.at(-1);
  if (part === '') return;
  if (typeof part === 'string' && typeof last === 'string') parts[parts.length - 1] = last + part;
  else parts.push(part);
}

function runEnd(text: string, at: number): number {
  const sign = text.charCodeAt(at);
  let end = at + 1;
  while (end < text.length && text.charCodeAt(end) === sign) end += 1;
  return end;
}

/** Marks inside words are no emphasis: names of variables have them, and sums. */
function isOnlyBesideWords(mark: string): boolean {
  return mark !== '**' && mark !== '~~';
}

function isEscape(text: string, at: number): boolean {
  return /[!-/:-@[-`{-~]/.test(text.charAt(at + 1));
}

function isVisible(sign: string): boolean {
  return /\S/.test(sign);
}

function isWord(sign: string): boolean {
  return /[\p{L}\p{N}_]/u.test(sign);
}
