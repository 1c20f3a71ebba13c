import { codeAt, tableAt } from '../../markdown/blocks.ts';
import { escapeHtml, inlineHtml } from '../../markdown/html.ts';
import { parseInline } from '../../markdown/inline.ts';
import { headingOf } from '../../markdown/lines.ts';

/**
 * Markdown, as models write it, as the HTML that Telegram takes. What is not known stays as it is, escaped. What people
 * see is never longer than the Markdown was, so a text within the limit stays within it.
 */
export function renderHtml(markdown: string): string {
  const lines = markdown.split('\n');
  const rendered: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const block = fenceAt(lines, at) ?? columnsAt(lines, at) ?? quoteAt(lines, at);
    rendered.push(block?.html ?? renderLine(lines[at] ?? ''));
    at = block?.next ?? at + 1;
  }
  return rendered.join('\n');
}

interface Block {
  readonly html: string;
  /** The line behind it. */
  readonly next: number;
}

function fenceAt(lines: readonly string[], at: number): Block | null {
  const found = codeAt(lines, at);
  if (found === null) return null;
  const { language, next } = found;
  const code = escapeHtml(found.lines.join('\n'));
  if (code.trim() === '') return { html: '', next };
  const html = language === null ? code : `<code class="language-${escapeHtml(language)}">${code}</code>`;
  return { html: `<pre>${html}</pre>`, next };
}

/** Telegram has no tables; in one width the columns at least stand where they were written. */
function columnsAt(lines: readonly string[], at: number): Block | null {
  const table = tableAt(lines, at);
  return table === null ? null : { html: `<pre>${escapeHtml(table.lines.join('\n'))}</pre>`, next: table.next };
}

/** Quotes in quotes are one quote: Telegram allows no other. */
function quoteAt(lines: readonly string[], at: number): Block | null {
  const quoted: string[] = [];
  for (let next = at; next < lines.length; next += 1) {
    const line = lines[next] ?? '';
    const [marks] = /^ {0,3}(?:> ?)+/.exec(line) ?? [];
    if (marks === undefined) break;
    quoted.push(renderLine(line.slice(marks.length)));
  }
  if (quoted.length === 0) return null;
  const html = quoted.join('\n');
  return { html: html.trim() === '' ? '' : `<blockquote>${html}</blockquote>`, next: at + quoted.length };
}

function renderLine(line: string): string {
  const heading = headingOf(line)?.words;
  if (heading !== undefined) {
    const isBold = heading.length > 4 && heading.startsWith('**') && heading.endsWith('**');
    return heading === '' ? '' : `<b>${renderWords(isBold ? heading.slice(2, -2) : heading)}</b>`;
  }
  if (/^ {0,3}([-*_])\s*(?:\1\s*){2,}$/.test(line)) return '———';
  const [item, indent = '', box] = /^(\s*)[-*+]\s+(?:\[([ xX])\]\s+)?/.exec(line) ?? [];
  if (item === undefined) return renderWords(line);
  const sign = box === undefined ? '•' : box === ' ' ? '☐' : '☑';
  return `${indent}${sign} ${renderWords(line.slice(item.length))}`;
}

const WORDS = {
  tags: { strong: 'b', em: 'i', del: 's' },
  links: /^(?:https?:\/\/|mailto:|tel:)\S/i,
  linksAddresses: true,
} as const;

function renderWords(line: string): string {
  return inlineHtml(parseInline(line), WORDS);
}
