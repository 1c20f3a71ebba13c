/** The part of Markdown that people and models use in chats, as data: what cannot be said here stays text. */

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

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|\t|$)(.*)$/;
const TABLE_RULE = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

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
    const mark: string | undefined = FENCE.exec(line)?.[1];
    if (fence === null && (mark !== undefined || beginsBlock(lines, line))) close();
    lines.push(line);
    if (fence === null) fence = mark ?? null;
    else if (closes(line, fence)) {
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

function closes(line: string, fence: string): boolean {
  const mark = line.trim();
  return mark.length >= fence.length && mark === fence.charAt(0).repeat(mark.length);
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
  const heading = HEADING.exec(line);
  if (heading !== null) {
    const [, marks = '', words = ''] = heading;
    return { block: { type: 'heading', level: marks.length, inside: parseInline(words) }, next: at + 1 };
  }
  if (RULE.test(line)) return { block: { type: 'rule' }, next: at + 1 };
  if (FENCE.test(line)) return codeAt(lines, at);
  if (QUOTE.test(line)) return quoteAt(lines, at, depth);
  const item = ITEM.exec(line);
  // In the middle of a paragraph a number is a number; "1." begins a list.
  if (item !== null && !(inParagraph && /^\d/.test(item[2] ?? '') && item[2]?.slice(0, -1) !== '1')) {
    return listAt(lines, at, depth);
  }
  return line.includes('|') && TABLE_RULE.test(lines[at + 1] ?? '') ? tableAt(lines, at) : null;
}

function codeAt(lines: readonly string[], at: number): Found {
  const [, fence = '```', language = ''] = FENCE.exec(lines[at] ?? '') ?? [];
  let end = at + 1;
  while (end < lines.length && !closes(lines[end] ?? '', fence)) end++;
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
      if (!/^\s/.test(line) && (FENCE.test(line) || HEADING.test(line) || QUOTE.test(line))) break;
      items.at(-1)?.push(line.replace(new RegExp(`^\\s{1,${indent}}`), ''));
    } else break;
  }
  const start = ordered ? Number.parseInt(first, 10) : null;
  return { block: { type: 'list', start, items: items.map((item) => parseBlocks(item.join('\n'), depth + 1)) }, next };
}

function tableAt(lines: readonly string[], at: number): Found | null {
  const head = cellsOf(lines[at] ?? '');
  const rows: string[][] = [];
  let next = at + 2;
  for (; next < lines.length && (lines[next] ?? '').includes('|'); next++) {
    const cells = cellsOf(lines[next] ?? '');
    rows.push(head.map((_, column) => cells[column] ?? ''));
  }
  if (head.length > MOST_COLUMNS || rows.length > MOST_ROWS) return null;
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

// Every repetition is bounded, so that no text takes longer than its length allows.
const INLINE = new RegExp(
  [
    '(?<escape>\\\\[\\\\`*_{}\\[\\]()#+.!|~>-])',
    '(?<ticks>`{1,3})(?<code>[^`\\n][^\\n]{0,500}?)\\k<ticks>(?!`)',
    '\\*\\*(?=\\S)(?<strong>[^\\n]{1,500}?\\S|\\S)\\*\\*(?!\\*)',
    '(?<![\\w_])__(?=\\S)(?<strong2>[^\\n]{1,500}?\\S|\\S)__(?![\\w_])',
    '\\*(?![\\s*])(?<em>[^*\\n]{1,500}?)(?<!\\s)\\*(?!\\*)',
    '(?<![\\w_])_(?![\\s_])(?<em2>[^_\\n]{1,500}?)(?<!\\s)_(?![\\w_])',
    '~~(?=\\S)(?<del>[^~\\n]{1,500})~~',
    '\\[(?<label>[^\\[\\]\\n]{1,300})\\]\\((?<href>[^\\s()<>]{1,1000}(?:\\([^\\s()<>]{0,200}\\)[^\\s()<>]{0,200})?)(?:\\s"[^"\\n]{0,200}")?\\)',
    '(?<![\\w])(?<url>https?:\\/\\/[^\\s<>"`]{1,1000})',
  ].join('|'),
  'g',
);

export function parseInline(text: string, depth = 0): Inline[] {
  const parts: Inline[] = [];
  const add = (part: Inline): void => {
    const last = parts.at(-1);
    if (part === '') return;
    if (typeof part === 'string' && typeof last === 'string') parts[parts.length - 1] = last + part;
    else parts.push(part);
  };
  let from = 0;
  for (const match of depth > DEEPEST ? [] : text.matchAll(INLINE)) {
    const [whole] = match;
    add(text.slice(from, match.index));
    from = match.index + whole.length;
    for (const part of inlineOf(match.groups ?? {}, whole, depth)) add(part);
  }
  add(text.slice(from));
  return parts;
}

function inlineOf(found: Record<string, string | undefined>, whole: string, depth: number): Inline[] {
  if (found.escape !== undefined) return [whole.slice(1)];
  if (found.code !== undefined) return [{ type: 'code', text: found.code }];
  const inside = (text: string): Inline[] => parseInline(text, depth + 1);
  const strong = found.strong ?? found.strong2;
  if (strong !== undefined) return [{ type: 'strong', inside: inside(strong) }];
  const em = found.em ?? found.em2;
  if (em !== undefined) return [{ type: 'em', inside: inside(em) }];
  if (found.del !== undefined) return [{ type: 'del', inside: inside(found.del) }];
  if (found.url !== undefined) return linked(found.url);
  const href = safeAddress(found.href ?? '');
  // A link that leads elsewhere than to the web is shown as it was written.
  return href === null ? [whole] : [{ type: 'link', href, inside: inside(found.label ?? '') }];
}

/** An address in the middle of a sentence ends before what ends the sentence. */
function linked(url: string): Inline[] {
  let end = url.length;
  while (
    /[.,;:!?'*_~]/.test(url.charAt(end - 1)) ||
    (url.charAt(end - 1) === ')' && !url.slice(0, end).includes('('))
  ) {
    end--;
  }
  const address = url.slice(0, end);
  const href = safeAddress(address);
  return href === null ? [url] : [{ type: 'link', href, inside: [address] }, url.slice(end)];
}

/** The address as the browser reads it, if it is one of the web; null for every other. */
function safeAddress(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, href } = new URL(text);
  return protocol === 'http:' || protocol === 'https:' ? href : null;
}
