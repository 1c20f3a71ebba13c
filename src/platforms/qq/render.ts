import { type Inline, parseInline } from '../../markdown/inline.ts';
import { closesFence, fenceOpening, headingOf } from '../../markdown/lines.ts';

/**
 * Markdown, as models write it, as QQ shows it to people and groups: nearly as it is. Each line is rendered by itself, so
 * that the beginning of a text is rendered as the beginning of the whole.
 */
export function renderMarkdown(markdown: string): string {
  return linesOf(markdown)
    .map(({ line, isCode }) => withoutTags(isCode ? line : withoutPictures(line)))
    .join('\n');
}

/** The same for where QQ shows no Markdown. */
export function renderPlain(markdown: string): string {
  const shown = linesOf(markdown).flatMap(({ line, isCode, isMark }) =>
    isMark ? [] : withoutTags(isCode ? line : plainLine(line)),
  );
  const text = shown.join('\n');
  return text.trim() === '' ? withoutTags(markdown) : text;
}

/**
 * A text with addresses that nobody takes for addresses: QQ refuses messages with those that the owner of the bot has not
 * registered. Names of files look like addresses, too.
 */
export function breakAddresses(text: string): string {
  return text.replaceAll(/(?<=\w)\.(?=[a-z]{2})/gi, '[.]');
}

/** What a text counts in whichever way it has to be sent. */
export function measureText(markdown: string): number {
  return Math.max(breakAddresses(renderMarkdown(markdown)).length, breakAddresses(renderPlain(markdown)).length);
}

/** The part of a growing text that is rendered the same whatever comes behind it. */
export function stablePart(markdown: string): string {
  const start = markdown.lastIndexOf('\n') + 1;
  const line = markdown.slice(start);
  const end = UNDECIDED.exec(line)?.index ?? line.length;
  return markdown.slice(0, start + end).trimEnd();
}

/** What may become a picture, a tag, a call to everybody or a block of code. */
const UNDECIDED = /!\[|!$|<[\w-]{0,8}$|@\w{0,8}$|^ {0,3}[`~]/;

interface Line {
  readonly line: string;
  readonly isCode: boolean;
  /** It opens or closes a block of code. */
  readonly isMark: boolean;
}

/** A block of code that is never closed goes to the end: the rest of it is still being written. */
function linesOf(markdown: string): Line[] {
  let mark: string | null = null;
  return markdown.split('\n').map((line) => {
    if (mark !== null) {
      const isMark = closesFence(line, mark);
      if (isMark) mark = null;
      return { line, isCode: true, isMark };
    }
    mark = fenceOpening(line)?.mark ?? null;
    return { line, isCode: mark !== null, isMark: mark !== null };
  });
}

/** QQ would fetch a picture by itself, from wherever it is said to be: it becomes a link. */
function withoutPictures(line: string): string {
  return line.replaceAll(/!(?=\[[^\]]{0,256}\]\()/g, '');
}

/** No words of a model call everybody, or make a button of themselves. */
function withoutTags(line: string): string {
  return line.replaceAll(/<(?=[@#]|qqbot-|emoji:)/g, '<\u200b').replaceAll('@everyone', '@\u200beveryone');
}

function plainLine(line: string): string {
  const heading = headingOf(line)?.words;
  if (heading !== undefined) return plainWords(heading);
  const [item, indent = ''] = /^(\s*)[-*+]\s+/.exec(line) ?? [];
  return item === undefined ? plainWords(line) : `${indent}• ${plainWords(line.slice(item.length))}`;
}

function plainWords(line: string): string {
  return parseInline(line).map(plainPart).join('');
}

function plainPart(part: Inline): string {
  if (typeof part === 'string') return part;
  if (part.type === 'code') return part.text;
  const words = part.inside.map(plainPart).join('');
  if (part.type !== 'link' || part.source === part.address || words === part.address) return words;
  return `${words} (${part.address})`;
}
