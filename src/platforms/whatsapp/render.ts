import { codeAt, tableAt } from '../../markdown/blocks.ts';
import { type Inline, parseInline } from '../../markdown/inline.ts';
import { headingOf } from '../../markdown/lines.ts';

const FENCE = '```';

/** Markdown, as models write it, in the marks that WhatsApp knows: `*bold*`, `_italic_`, `~struck~` and code. */
export function renderMarks(markdown: string): string {
  const lines = markdown.split('\n');
  const rendered: string[] = [];
  for (let at = 0; at < lines.length; ) {
    // Code without the name of its language, which WhatsApp would show. There are no tables; in one width the columns at
    // least stand where they were written.
    const block = codeAt(lines, at) ?? tableAt(lines, at);
    rendered.push(block === null ? renderLine(lines[at] ?? '') : codeBlock(block.lines));
    at = block?.next ?? at + 1;
  }
  return rendered.join('\n');
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
