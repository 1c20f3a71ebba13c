import { closesFence, fenceOpening } from '../markdown/lines.ts';
import type { Abilities } from './platform.ts';

/** What of a platform decides how a text is split. */
export interface Measure extends Pick<Abilities, 'maxText' | 'counts' | 'markdown'> {
  /** What a text counts once it is rendered, where that is not what it counts itself. */
  readonly rendered?: (text: string) => number;
}

/** A piece of a text. The bodies of all pieces are the text; what is around them mends a code fence that was cut. */
export interface Piece {
  /** Opens the fence again, in the same language. ASCII: all platforms count it the same. */
  readonly reopen: string;
  readonly body: string;
  /** Closes the fence that is open at the end. */
  readonly close: string;
}

/**
 * The parts of a text that each fit into one message: cut between paragraphs if possible, else between lines, else
 * between words, and inside a character as people see it only if that alone is too long.
 */
export function splitText(text: string, measure: Measure): string[] {
  const cut = cutText(text, measure).map(({ reopen, body, close }) => reopen + body + close);
  const parts = cut.flatMap((part) => fitRendered(part, measure));
  // A blank message shows nothing, and most platforms refuse it.
  const visible = parts.filter((part) => part.trim() !== '');
  return visible.length === 0 ? parts.slice(0, 1) : visible;
}

/** The parts of one that fits as it is written and may not fit as it is rendered. */
function fitRendered(part: string, measure: Measure): string[] {
  const { rendered, maxText } = measure;
  const size = rendered?.(part) ?? 0;
  if (size <= maxText || part.length <= LEAST_PART) return [part];
  // By how much it grew, and a little more: what grows most may stand together.
  const room = Math.max(LEAST_PART, Math.floor(Math.min(part.length - 1, (part.length * maxText * 0.9) / size)));
  return splitText(part, { ...measure, maxText: room, counts: 'utf16', rendered: () => 0 }).flatMap((smaller) =>
    smaller.length < part.length ? fitRendered(smaller, measure) : [smaller],
  );
}

/** What is shorter is sent as it is, and refused if it has to be. */
const LEAST_PART = 64;

/** Like `splitText`, with what was added told apart. */
export function cutText(text: string, measure: Measure): Piece[] {
  const fences = measure.markdown ? findFences(text) : [];
  const pieces: Piece[] = [];
  for (let start = 0; start < text.length; ) {
    const piece = nextPiece({ text, start, fences, measure });
    pieces.push(piece);
    start += piece.body.length;
  }
  return pieces;
}

interface Fence {
  readonly start: number;
  /** Where its code begins. */
  readonly code: number;
  /** Where the line that closes it begins; the end of the text if nothing closes it. */
  readonly close: number;
  /** Behind the closing line. */
  readonly end: number;
  readonly mark: string;
  readonly language: string;
}

interface Rest {
  readonly text: string;
  readonly start: number;
  readonly fences: readonly Fence[];
  readonly measure: Measure;
}

function nextPiece(rest: Rest): Piece {
  const { text, start, measure } = rest;
  const { maxText, counts } = measure;
  const open = fenceAround(rest, start);
  const reopen = open === null ? '' : `${open.mark}${open.language}\n`;
  // With hardly any room the mending would be all there is: then the text goes as it is.
  const mends = reopen.length + LEAST_FOR_MENDING <= maxText;
  const room = mends ? maxText - reopen.length : maxText;
  const whole = { reopen: mends ? reopen : '', body: text.slice(start), close: '' };
  if (reach(text, start, room, counts) === text.length) return whole;
  const end = cutWithin(rest, room);
  if (!mends) return { ...whole, body: text.slice(start, end) };
  const [body, close] = [text.slice(start, end), closingAt(rest, end)];
  if (reach(body + close, 0, room, counts) === body.length + close.length) return { ...whole, body, close };
  const earlier = cutWithin(rest, room - MOST_MARK - 1);
  return { ...whole, body: text.slice(start, earlier), close: closingAt(rest, earlier) };
}

const LEAST_FOR_MENDING = 48;

function closingAt(rest: Rest, end: number): string {
  const fence = fenceAround(rest, end);
  if (fence === null) return '';
  return rest.text.charAt(end - 1) === '\n' ? fence.mark : `\n${fence.mark}`;
}

/** The best place to end a piece of at most `room`; always behind the start. */
function cutWithin(rest: Rest, room: number): number {
  const { text, start, measure } = rest;
  const furthest = Math.max(reach(text, start, room, measure.counts), start + firstPoint(text, start));
  for (const [separator, share] of SEPARATORS) {
    const least = start + Math.max(1, Math.floor((furthest - start) * share));
    const cut = lastCut(rest, separator, least, furthest);
    if (cut !== null) return cut;
  }
  return wholeCharacter(text, start, besideClosing(rest, furthest));
}

/** How much of a message must be full for a cut at such a place: a short one reads worse than a cut in a line. */
const SEPARATORS: readonly (readonly [separator: string, share: number])[] = [
  ['\n\n', 0.5],
  ['\n', 0.25],
  [' ', 0.1],
  ['\n', 0],
  [' ', 0],
];

function lastCut(rest: Rest, separator: string, least: number, furthest: number): number | null {
  const { text, start, fences } = rest;
  const window = text.slice(start, furthest);
  let before = window.lastIndexOf(separator);
  while (before >= 0 && start + before + separator.length >= least) {
    const cut = start + before + separator.length;
    if (!isPoor(rest, cut, separator)) return cut;
    const fence = fences.find((each) => each.start < cut && cut <= each.code);
    // Before a fence that would be cut at its edge is a place as good as between paragraphs.
    if (fence !== undefined && fence.start >= least && fence.start > start) return fence.start;
    before = before === 0 ? -1 : window.lastIndexOf(separator, before - 1);
  }
  return null;
}

/** Cuts that would leave an empty block of code, part inline code, or a mark apart from its letter. */
function isPoor({ text, start, fences }: Rest, cut: number, separator: string): boolean {
  const fence = fences.find((each) => each.start < cut && cut < each.end);
  if (fence !== undefined) return cut <= fence.code || cut >= fence.close;
  return separator === ' ' && (/^[\p{M}\p{Cf}]/u.test(text.slice(cut, cut + 2)) || isInCode(text, start, cut));
}

function isInCode(text: string, start: number, cut: number): boolean {
  const before = text.slice(start, cut);
  const line = before.slice(before.lastIndexOf('\n') + 1);
  const isOpen = line.split('`').length % 2 === 0;
  return isOpen && /^[^\n`]*`/.test(text.slice(cut, cut + LONGEST_CODE));
}

/** A mark with no second one near is no code. */
const LONGEST_CODE = 512;

/** A closing line is not parted: some code goes along with it. */
function besideClosing({ fences, start }: Rest, end: number): number {
  const fence = fences.find((each) => each.close <= end && end < each.end);
  if (fence === undefined) return end;
  const earlier = fence.close - CODE_WITH_CLOSING;
  return earlier > Math.max(start, fence.code) ? earlier : end;
}

const CODE_WITH_CLOSING = 16;

function fenceAround({ fences }: Rest, at: number): Fence | null {
  return fences.find(({ code, close }) => code <= at && at < close) ?? null;
}

/** How far a text of that size goes, between code points. */
function reach(text: string, start: number, room: number, counts: Measure['counts']): number {
  let left = room;
  let at = start;
  while (at < text.length) {
    const length = firstPoint(text, at);
    left -= pointSize(text, at, length, counts);
    if (left < 0) return at;
    at += length;
  }
  return at;
}

function firstPoint(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

function pointSize(text: string, at: number, length: number, counts: Measure['counts']): number {
  if (counts === 'utf16') return length;
  if (counts === 'points') return 1;
  const point = text.codePointAt(at) ?? 0;
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point < 0x10000 ? 3 : 4;
}

/** Made when it is needed: it loads the rules of all scripts. */
let characters: Intl.Segmenter | null = null;
const LOOK_AHEAD = 64;

/** The end moved to before the character it would part, unless that one alone is longer than the piece. */
function wholeCharacter(text: string, start: number, end: number): number {
  characters ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  const around = characters.segment(text.slice(start, end + LOOK_AHEAD)).containing(end - start);
  const before = around === undefined ? end : start + around.index;
  return before > start ? before : end;
}

function findFences(text: string): Fence[] {
  const fences: Fence[] = [];
  let open: Omit<Fence, 'close' | 'end'> | null = null;
  // Each line with its line break.
  for (const { 0: line, index: start } of text.matchAll(/[^\n]*\n|[^\n]+$/g)) {
    const end = start + line.length;
    if (open === null) {
      const opening = openingOf(line);
      if (opening !== null) open = { ...opening, start, code: end };
    } else if (closesFence(line, open.mark)) {
      fences.push({ ...open, close: start, end });
      open = null;
    }
  }
  if (open !== null) fences.push({ ...open, close: text.length, end: text.length });
  return fences;
}

function openingOf(line: string): { mark: string; language: string } | null {
  const { mark, info } = fenceOpening(line) ?? { mark: '', info: '' };
  if (mark === '' || mark.length > MOST_MARK) return null;
  return { mark, language: /^[\w+#.-]{1,16}/.exec(info)?.[0] ?? '' };
}

/** Longer ones are drawings, not fences. */
const MOST_MARK = 8;
