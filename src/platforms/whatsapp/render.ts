import { type Inline, parseInline } from '../../markdown/inline.ts';
import { closesFence, fenceOpening, headingOf, isTableRule } from '../../markdown/lines.ts';

const FENCE = '```';

/** Markdown, as models write it, in the marks that WhatsApp knows: `*bold*`, `_italic_`, `~struck~` and code. */
export function renderMarks(markdown: string): string {
  const lines = markdown.split('\n');
  const rendered: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const block = fenceAt(lines, at) ?? tableAt(lines, at);
    rendered.push(block?.text ?? renderLine(lines[at] ?? ''));
    at = block?.next ?? at + 1;
  }
  return rendered.join('\n');
}

interface Block {
  readonly text: string;
  /** The line behind it. */
  readonly next: number;
}

/** Without the name of the language, which WhatsApp would show. */
function fenceAt(lines: readonly string[], at: number): Block | null {
  const opening = fenceOpening(lines[at] ?? '');
  if (opening === null) return null;
  let end = at + 1;
  while (end < lines.length && !closesFence(lines[end] ?? '', opening.mark)) end += 1;
  return { text: codeBlock(lines.slice(at + 1, end)), next: end + 1 };
}

/** WhatsApp has no tables; in one width the columns at least stand where they were written. */
function tableAt(lines: readonly string[], at: number): Block | null {
  if (!isRow(lines[at]) || !isRow(lines[at + 1]) || !isTableRule(lines[at + 1] ?? '')) return null;
  let next = at + 2;
  while (isRow(lines[next])) next += 1;
  return { text: codeBlock(lines.slice(at, next)), next };
}

function isRow(line: string | undefined): boolean {
  return line?.includes('|') === true;
}

function codeBlock(lines: readonly string[]): string {
  const code = lines.join('\n');
  return code.trim() === '' ? '' : `${FENCE}\n${code}\n${FENCE}`;
}

function renderLine(line: string): string {
  const heading = headingOf(line)?.words;
  if (heading !== undefined) return heading === '' ? '' : marked('*', renderInline(parseInline(heading), '*'));
  if (/^ {0,3}([-*_])\s*(?:\1\s*){2,}$/.test(line)) return '———';
  const [quote = ''] = /^ {0,3}(?:> ?)+/.exec(line) ?? [];
  const rest = line.slice(quote.length);
  // Quotes in quotes are one quote: WhatsApp knows no other.
  const before = quote === '' ? '' : '> ';
  const [item, indent = '', box] = /^(\s*)[-*+]\s+(?:\[([ xX])\]\s+)?/.exec(rest) ?? [];
  if (item === undefined) return `${before}${renderInline(parseInline(rest), '')}`;
  const sign = box === undefined ? '•' : box === ' ' ? '☐' : '☑';
  return `${before}${indent}${sign} ${renderInline(parseInline(rest.slice(item.length)), '')}`;
}

const MARKS = { strong: '*', em: '_', del: '~' } as const;

/** `open` are the marks around it: the same one inside would close them. */
function renderInline(parts: readonly Inline[], open: string): string {
  return parts.map((part) => renderPart(part, open)).join('');
}

function renderPart(part: Inline, open: string): string {
  if (typeof part === 'string') return part;
  if (part.type === 'code') return part.text.includes(FENCE) ? part.text : `${FENCE}${part.text}${FENCE}`;
  if (part.type !== 'link') {
    const mark = MARKS[part.type];
    return open.includes(mark) ? renderInline(part.inside, open) : marked(mark, renderInline(part.inside, open + mark));
  }
  const words = renderInline(part.inside, open);
  // WhatsApp makes links of addresses by itself.
  const { address, source } = part;
  if (source === address || words === address) return address;
  return address === '' ? words : `${words} (${address})`;
}

/** A mark beside a blank marks nothing. */
function marked(mark: string, words: string): string {
  return words.trim() === words && words !== '' ? `${mark}${words}${mark}` : words;
}
