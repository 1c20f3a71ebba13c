import { closesFence, fenceOpening } from '../../markdown/lines.ts';

const TITLE = 40;
const TITLE_FROM = 400;

/** A text as a message shows it: what stands on lines of its own stays there. */
export function renderMessage(markdown: string): string {
  return inLines(markdown, (line, next) => (isBroken(line, next) ? `${line}  ` : line));
}

/** The same on a card, which shows lines as they are. */
export function renderCard(markdown: string): string {
  return inLines(markdown, (line) => line);
}

/** DingTalk joins the lines of a paragraph unless two blanks end them. */
function isBroken(line: string, next: string | undefined): boolean {
  return next !== undefined && next.trim() !== '' && line.trim() !== '' && !line.endsWith('  ');
}

/** Shows each line that is not code, with what could act for the reader taken out. */
function inLines(markdown: string, show: (line: string, next: string | undefined) => string): string {
  const lines = markdown.split('\n');
  let fence: string | null = null;
  const shown = lines.map((line, at) => {
    if (fence !== null) {
      if (closesFence(line, fence)) fence = null;
      return line;
    }
    fence = fenceOpening(line)?.mark ?? null;
    return fence === null ? show(harmless(line), lines[at + 1]) : line;
  });
  return shown.join('\n');
}

/**
 * Links of DingTalk's own schemes send messages and open apps in the name of who presses them, and pictures are fetched
 * as soon as they are seen: the first are shown as text, the second as links.
 */
function harmless(line: string): string {
  if (!/[[<]/.test(line)) return line;
  return line
    .replaceAll('![', '[')
    .replace(/\]\(/g, (link, at: number, all: string) => (isHarmless(all, at + 2) ? link : '] ('))
    .replace(/^( {0,3}\[[^\]]{0,200}\]):/, (name, _, at: number, all: string) =>
      isHarmless(all, at + name.length) ? name : `${name.slice(0, -1)} :`,
    )
    .replace(/<(?=[a-z][a-z0-9+.-]{1,40}:|a\s{1,8}href)/gi, (mark, at: number, all: string) =>
      isHarmless(all, at + 1) ? mark : '< ',
    );
}

/** What can stand in front of an address. */
const BEFORE = /[\s<]*/y;
const LOOKED_AT = 64;

/** Whether the address that begins here is one of the web, or names no scheme at all. */
function isHarmless(text: string, start: number): boolean {
  BEFORE.lastIndex = start;
  BEFORE.exec(text);
  const address = text.slice(BEFORE.lastIndex, BEFORE.lastIndex + LOOKED_AT);
  if (/^(?:https?:\/\/|mailto:|tel:)/i.test(address)) return true;
  // An address may stand on the next line, and a scheme may be written with escapes.
  return address !== '' && !/^(?:[^\s/?#)]{0,40}[:&\\]|a\s)/i.test(address);
}

/** What the list of chats shows of a message: the beginning of what it says. */
export function titleOf(markdown: string): string {
  const lines = markdown.slice(0, TITLE_FROM).split('\n');
  const words = lines.map((line) => line.replaceAll(/[#*_`~>[\]|]/g, '').trim()).find((line) => line !== '');
  const points = [...(words ?? '').toWellFormed()];
  if (points.length === 0) return '…';
  return points.length <= TITLE ? points.join('') : `${points.slice(0, TITLE - 1).join('')}…`;
}
