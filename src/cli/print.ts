import { once } from 'node:events';
import { writeSync } from 'node:fs';

/**
 * Characters that would act on a terminal instead of being seen in it: controls (also line breaks), lone surrogates,
 * line and paragraph separators, and invisible format characters such as bidirectional marks. The joiners that emoji
 * and some scripts need are left alone.
 */
const ACTING = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\u001b': '\\x1b' };

/** Text of unknown origin as one line of visible text. Everything shown to people goes through here. */
export function printable(text: string): string {
  return text.replace(ACTING, (character) => NAMED[character] ?? `\\u{${codePoint(character)}}`);
}

function codePoint(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16);
}

/** At most so many characters, and never half of one. */
export function shorten(text: string, length: number): string {
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`;
}

/** A word as one would type it in a shell. */
export function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

const gone = new AbortController();
let listening = false;

/** Aborted when the reader of standard output is gone, as behind `| head`. */
export const outputGone: AbortSignal = gone.signal;

/** Writes to standard output, at the pace of its reader. */
export async function print(text: string): Promise<void> {
  const { stdout } = process;
  if (!listening) {
    listening = true;
    // A reader that left is no failure of ours: the rest is not written, and the command ends in order.
    stdout.on('error', () => gone.abort());
  }
  if (outputGone.aborted || stdout.write(text)) return;
  await once(stdout, 'drain', { signal: outputGone }).catch(() => undefined); // Gone: nothing to wait for.
}

export async function printLine(text: string): Promise<void> {
  await print(`${text}\n`);
}

export async function printJson(value: unknown): Promise<void> {
  await print(`${JSON.stringify(value, null, 2)}\n`);
}

/** Writes to standard error at once, and without making it a stream: a command started by us shares the descriptor. */
export function complain(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // Standard error is closed: there is no place left to report that.
  }
}

/** Rows under their headings in aligned columns. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings, ...rows].map((row) => row.map(printable));
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ''))));
  return lines.map((line) => `${alignedRow(line, widths)}\n`).join('');
}

function alignedRow(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)));
  return padded.join('  ').trimEnd();
}

// What terminals show two columns wide: East Asian wide and fullwidth characters, and most emoji.
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const WIDTHLESS = /[\p{Mn}\p{Me}\u200c\u200d]/u;

/** How many columns a terminal needs to show it. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += WIDE.test(character) ? 2 : WIDTHLESS.test(character) ? 0 : 1;
  return width;
}

/** Names and values, one a line; values that are null are left out. */
export function facts(pairs: Readonly<Record<string, string | number | null>>): string {
  const shown = Object.entries(pairs).filter(([, value]) => value !== null);
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${printable(String(value))}\n`).join('');
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** How far a time is from now, in its largest unit: `3m ago`, `in 2h`, `now`. */
export function relativeTime(at: number, now = Date.now()): string {
  const distance = Math.abs(now - at);
  const unit = UNITS.find(([, ms]) => distance >= ms);
  if (unit === undefined) return 'now';
  const shown = `${Math.floor(distance / unit[1])}${unit[0]}`;
  return at <= now ? `${shown} ago` : `in ${shown}`;
}
