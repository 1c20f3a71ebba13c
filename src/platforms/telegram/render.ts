import { type Inline, parseInline } from '../../markdown/inline.ts';
import { closesFence, fenceOpening, headingOf, isTableRule } from '../../markdown/lines.ts';

/**
 * Markdown, as models write it, as the HTML that Telegram takes. What is not known stays as it is, escaped. What people
 * see is never longer than the Markdown was, so a text within the limit stays within it.
 */
export function renderHtml(markdown: string): string {
  const lines = markdown.split('\n');
  const rendered: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const block = fenceAt(lines, at) ?? tableAt(lines, at) ?? quoteAt(lines, at);
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

/** A fence that is never closed goes to the end: the rest of it is still being written. */
function fenceAt(lines: readonly string[], at: number): Block | null {
  const opening = fenceOpening(lines[at] ?? '');
  if (opening === null) return null;
  let end = at + 1;
  while (end < lines.length && !closesFence(lines[end] ?? '', opening.mark)) end += 1;
  const code = escapeHtml(lines.slice(at + 1, end).join('\n'));
  const language = /^[\w+#.-]{1,32}/.exec(opening.info)?.[0];
  const html =
    language === undefined
      ? `<pre>${code}</pre>`
      : `<pre><code class="language-${escapeHtml(language)}">${code}</code></pre>`;
  return { html: code.trim() === '' ? '' : html, next: end + 1 };
}

/** Telegram has no tables; in one width the columns at least stand where they were written. */
function tableAt(lines: readonly string[], at: number): Block | null {
  if (!isRow(lines[at]) || !isRow(lines[at + 1]) || !isTableRule(lines[at + 1] ?? '')) return null;
  let next = at + 2;
  while (isRow(lines[next])) next += 1;
  return { html: `<pre>${escapeHtml(lines.slice(at, next).join('\n'))}</pre>`, next };
}

function isRow(line: string | undefined): boolean {
  return line?.includes('|') === true;
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

const TAGS = { strong: 'b', em: 'i', del: 's' } as const;

function renderWords(line: string): string {
  return renderInline(parseInline(line));
}

function renderInline(parts: readonly Inline[]): string {
  return parts.map(renderPart).join('');
}

function renderPart(part: Inline): string {
  if (typeof part === 'string') return escapeHtml(part);
  if (part.type === 'code') return `<code>${escapeHtml(part.text)}</code>`;
  const words = renderInline(part.inside);
  if (part.type !== 'link') return `<${TAGS[part.type]}>${words}</${TAGS[part.type]}>`;
  const { address, source } = part;
  // Telegram makes links of such addresses by itself.
  if (source === address) return words;
  if (/^(?:https?:\/\/|mailto:|tel:)\S/i.test(address)) return `<a href="${escapeHtml(address)}">${words}</a>`;
  return words === escapeHtml(address) ? words : `${words} (${escapeHtml(address)})`;
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
