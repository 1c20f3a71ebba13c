/** The part of Markdown that people and models use in chats, as data: what cannot be said here stays text. */

import { type Inline as Parsed, parseInline as parseLine } from '../../../markdown/inline.ts';
import { closesFence, type FenceOpening, fenceOpening, headingOf, isTableRule } from '../../../markdown/lines.ts';

export type Inline =
  | string
  | { readonly type: 'strong' | 'em' | 'del'; readonly inside: readonly Inline[] }
  | { readonly type: 'code'; readonly text: string }
  | { readonly type: 'link'; readonly href: string; readonly inside: readonly Inline[] };

export type Block =
  | { readonly type: 'paragraph'; readonly inside: readonly Inline[] }
  | { readonly type: 'heading'; readonly level: number; readonly inside: readonly Inline[] }
  | { readonly type: 'code'; readonly language: string; readonly text: string }
  | { readonly type: 'quote'; readonly blocks: readonly Block[] }
  | { readonly type: 'list'; readonly start: number | null; readonly items: readonly (readonly Block[])[] }
  | {
      readonly type: 'table';
      readonly head: readonly (readonly Inline[])[];
      readonly rows: readonly (readonly (readonly Inline[])[])[];
    }
  | { readonly type: 'rule' };

const DEEPEST = 6;
const MOST_COLUMNS = 12;
const MOST_ROWS = 200;

const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|\t|$)(.*)$/;

/** Parts a text between blocks, so that one that grows is read anew only at its end. */
export function splitBlocks(text: string): string[] {
  const parts: string[] = [];
  let lines: string[] = [];
  let fence: string | null = null;
  const close = (): void => {
    if (lines.length > 0) parts.push(lines.join('\n'));
    lines = [];
  };
  for (const line of text.split('\n')) {
    const mark: string | undefined = fence === null ? fenceOpening(line)?.mark : undefined;
    if (fence === null && (mark !== undefined || beginsBlock(lines, line))) close();
    lines.push(line);
    if (fence === null) fence = mark ?? null;
    else if (closesFence(line, fence)) {
      fence = null;
      close();
    }
  }
  close();
  return parts;
}

/** Whether a line stands behind a blank one and does not belong to a list above it, as items and indented lines do. */
function beginsBlock(above: readonly string[], line: string): boolean {
  if (line.trim() === '' || above.at(-1)?.trim() !== '') return false;
  const isList = ITEM.test(above.find((one) => one.trim() !== '') ?? '');
  return !(isList && (/^\s/.test(line) || ITEM.test(line)));
}

export function parseBlocks(text: string, depth = 0): Block[] {
  const lines = text.split('\n');
  const blocks: Block[] = [];
  let paragraph: string[] = [];
  const flush = (): void => {
    const words = paragraph.join('\n').trim();
    if (words !== '') blocks.push({ type: 'paragraph', inside: parseInline(words) });
    paragraph = [];
  };
  for (let i = 0; i < lines.length; ) {
    const line = lines[i] ?? '';
    const found = depth < DEEPEST ? blockAt(lines, i, paragraph.length > 0, depth) : null;
    if (found === null) {
      if (line.trim() === '') flush();
      else paragraph.push(line);
      i++;
    } else {
      flush();
      blocks.push(found.block);
      i = found.next;
    }
  }
  flush();
  return blocks;
}

interface Found {
  readonly block: Block;
  readonly next: number;
}

function blockAt(lines: readonly string[], at: number, inParagraph: boolean, depth: number): Found | null {
  const line = lines[at] ?? '';
  const heading = headingOf(line);
  if (heading !== null && heading.words !== '') {
    const { level, words } = heading;
    return { block: { type: 'heading', level, inside: parseInline(words) }, next: at + 1 };
  }
  if (RULE.test(line)) return { block: { type: 'rule' }, next: at + 1 };
  const fence = fenceOpening(line);
  if (fence !== null) return codeAt(lines, at, fence);
  if (QUOTE.test(line)) return quoteAt(lines, at, depth);
  const item = ITEM.exec(line);
  // In the middle of a paragraph a number is a number; "1." begins a list.
  if (item !== null && !(inParagraph && /^\d/.test(item[2] ?? '') && item[2]?.slice(0, -1) !== '1')) {
    return listAt(lines, at, depth);
  }
  return line.includes('|') && isTableRule(lines[at + 1] ?? '') ? tableAt(lines, at) : null;
}

function codeAt(lines: readonly string[], at: number, { mark, info }: FenceOpening): Found {
  let end = at + 1;
  while (end < lines.length && !closesFence(lines[end] ?? '', mark)) end++;
  const [language = ''] = info.split(/\s/, 1);
  return { block: { type: 'code', language, text: lines.slice(at + 1, end).join('\n') }, next: end + 1 };
}

function quoteAt(lines: readonly string[], at: number, depth: number): Found {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end] ?? '')) end++;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ''));
  return { block: { type: 'quote', blocks: parseBlocks(inside.join('\n'), depth + 1) }, next: end };
}

function listAt(lines: readonly string[], at: number, depth: number): Found {
  const [, , first = '-'] = ITEM.exec(lines[at] ?? '') ?? [];
  const ordered = /\d/.test(first);
  const items: string[][] = [];
  let indent = 0;
  let next = at;
  for (; next < lines.length; next++) {
    const line = lines[next] ?? '';
    const item = ITEM.exec(line);
    if (item !== null && (item[1]?.length ?? 0) < Math.max(indent, 1)) {
      if (/\d/.test(item[2] ?? '') !== ordered) break;
      indent = (item[1]?.length ?? 0) + (item[2]?.length ?? 1) + 1;
      items.push([item[4] ?? '']);
    } else if (line.trim() === '') {
      // A blank line ends the list unless it goes on behind it.
      const after = lines[next + 1] ?? '';
      if (!/^\s/.test(after) && !ITEM.test(after)) break;
      items.at(-1)?.push('');
    } else if (/^\s/.test(line) || lines[next - 1]?.trim() !== '') {
      if (!/^\s/.test(line) && (fenceOpening(line) !== null || headingOf(line) !== null || QUOTE.test(line))) break;
      items.at(-1)?.push(line.slice(Math.min(indent, line.length - line.trimStart().length)));
    } else break;
  }
  const start = ordered ? Number.parseInt(first, 10) : null;
  return { block: { type: 'list', start, items: items.map((item) => parseBlocks(item.join('\n'), depth + 1)) }, next };
}

function tableAt(lines: readonly string[], at: number): Found | null {
  const head = cellsOf(lines[at] ?? '');
  if (head.length > MOST_COLUMNS) return null;
  const rows: string[][] = [];
  let next = at + 2;
  for (; next < lines.length && (lines[next] ?? '').includes('|'); next++) {
    // Every line of such a table may be taken for a head of its own: none is read to the end.
    if (rows.length === MOST_ROWS) return null;
    const cells = cellsOf(lines[next] ?? '');
    rows.push(head.map((_, column) => cells[column] ?? ''));
  }
  const read = (cells: string[]): Inline[][] => cells.map((cell) => parseInline(cell));
  return { block: { type: 'table', head: read(head), rows: rows.map(read) }, next };
}

function cellsOf(line: string): string[] {
  return line
    .trim()
    .replace(/^\||\|$/g, '')
    .split('|')
    .map((cell) => cell.trim());
}

/** Nothing that is marked in a line goes on in the next. */
export function parseInline(text: string): Inline[] {
  const parts = text.split('\n').flatMap((line, i) => [i === 0 ? '' : '\n', ...parseLine(line)]);
  return joined(parts.flatMap(inlineOf));
}

function inlineOf(part: Parsed): Inline[] {
  if (typeof part === 'string' || part.type === 'code') return [part];
  const inside = joined(part.inside.flatMap(inlineOf));
  if (part.type !== 'link') return [{ type: part.type, inside }];
  const href = safeAddress(part.address);
  // A link that leads elsewhere than to the web is shown as it was written.
  return href === null ? [part.source] : [{ type: 'link', href, inside }];
}

/** Words that stand side by side are one text. */
function joined(parts: readonly Inline[]): Inline[] {
  const result: Inline[] = [];
  for (const part of parts) {
    const last = result.at(-1);
    if (typeof part === 'string' && typeof last === 'string') result[result.length - 1] = last + part;
    else if (part !== '') result.push(part);
  }
  return result;
}

/** The address as the browser reads it, if it is one of the web; null for every other. */
function safeAddress(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, href } = new URL(text);
  return protocol === 'http:' || protocol === 'https:' ? href : null;
}
