import { codeAt, isTableStart, tableAt } from '../../markdown/blocks.ts';
import { escapeHtml, inlineHtml } from '../../markdown/html.ts';
import { parseInline } from '../../markdown/inline.ts';
import { fenceOpening, headingOf } from '../../markdown/lines.ts';

/**
 * Markdown, as models write it, as the HTML of a mail. What is not known stays as it is, escaped; no address but those of
 * the web, of mail and of telephones becomes a link.
 */
export function renderHtml(markdown: string): string {
  const lines = markdown.replaceAll('\r\n', '\n').split('\n');
  const rendered: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const block = blockAt(lines, at);
    rendered.push(block.html);
    at = block.next;
  }
  return `<!DOCTYPE html><html><body>\n${rendered.filter((html) => html !== '').join('\n')}\n</body></html>`;
}

interface Block {
  readonly html: string;
  /** The line behind it. */
  readonly next: number;
}

function blockAt(lines: readonly string[], at: number): Block {
  return (
    fenceAt(lines, at) ??
    rowsAt(lines, at) ??
    quoteAt(lines, at) ??
    listAt(lines, at) ??
    lineAt(lines, at) ??
    wordsAt(lines, at)
  );
}

function fenceAt(lines: readonly string[], at: number): Block | null {
  const found = codeAt(lines, at);
  if (found === null) return null;
  return { html: `<pre><code>${escapeHtml(found.lines.join('\n'))}</code></pre>`, next: found.next };
}

function rowsAt(lines: readonly string[], at: number): Block | null {
  const table = tableAt(lines, at);
  if (table === null) return null;
  const rowOf = (line: string, tag: 'th' | 'td'): string => {
    const cells = line.trim().replace(/^\|/, '').replace(/\|$/, '').split('|');
    return `<tr>${cells.map((cell) => `<${tag}>${renderWords(cell.trim())}</${tag}>`).join('')}</tr>`;
  };
  const [head = '', , ...rest] = table.lines;
  const rows = [rowOf(head, 'th'), ...rest.map((line) => rowOf(line, 'td'))];
  return {
    html: `<table border="1" cellpadding="4" cellspacing="0">\n${rows.join('\n')}\n</table>`,
    next: table.next,
  };
}

function quoteAt(lines: readonly string[], at: number): Block | null {
  const quoted: string[] = [];
  for (let next = at; next < lines.length; next += 1) {
    const line = lines[next] ?? '';
    const [marks] = /^ {0,3}(?:> ?)+/.exec(line) ?? [];
    if (marks === undefined) break;
    quoted.push(renderWords(line.slice(marks.length)));
  }
  if (quoted.length === 0) return null;
  return { html: `<blockquote>${quoted.join('<br>\n')}</blockquote>`, next: at + quoted.length };
}

interface Item {
  readonly indent: number;
  readonly sign: string;
  readonly words: string;
}

/** Items of one list are one block; how deep an item is shows by its distance from the edge. */
function listAt(lines: readonly string[], at: number): Block | null {
  const items: Item[] = [];
  for (let next = at; next < lines.length; next += 1) {
    const item = itemIn(lines[next] ?? '');
    if (item === null) break;
    items.push(item);
  }
  if (items.length === 0) return null;
  const html = items.map(({ indent, sign, words }) => {
    return `<div style="margin-left:${1 + Math.min(indent, 16) / 2}em">${sign} ${renderWords(words)}</div>`;
  });
  return { html: html.join('\n'), next: at + items.length };
}

function itemIn(line: string): Item | null {
  const [whole, indent = '', mark = ''] = /^( {0,32})([-*+]|\d{1,9}[.)])(?= )/.exec(line) ?? [];
  if (whole === undefined || isRule(line)) return null;
  const [box, state] = /^ {1,4}\[([ xX])\] /.exec(line.slice(whole.length)) ?? [];
  const words = line.slice(whole.length + (box?.length ?? 0)).trim();
  const sign = box === undefined ? (/\d/.test(mark) ? mark : '•') : state === ' ' ? '☐' : '☑';
  return { indent: indent.length, sign, words };
}

function isRule(line: string): boolean {
  const marks = line.replaceAll(' ', '');
  return marks.length >= 3 && ['-', '*', '_'].some((mark) => marks === mark.repeat(marks.length));
}

function lineAt(lines: readonly string[], at: number): Block | null {
  const line = lines[at] ?? '';
  if (line.trim() === '') return { html: '', next: at + 1 };
  if (isRule(line)) return { html: '<hr>', next: at + 1 };
  const heading = headingOf(line);
  if (heading === null) return null;
  const tag = `h${heading.level}`;
  return { html: `<${tag}>${renderWords(heading.words)}</${tag}>`, next: at + 1 };
}

/** Lines that follow each other; the first begins nothing else, as was looked at before. */
function wordsAt(lines: readonly string[], at: number): Block {
  const words = [renderWords(lines[at] ?? '')];
  let next = at + 1;
  while (next < lines.length && !beginsBlock(lines, next)) words.push(renderWords(lines[next++] ?? ''));
  return { html: `<p>${words.join('<br>\n')}</p>`, next };
}

function beginsBlock(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? '';
  const begins = line.trim() === '' || /^ {0,3}>/.test(line) || fenceOpening(line) !== null || headingOf(line) !== null;
  return begins || isRule(line) || itemIn(line) !== null || isTableStart(lines, at);
}

const WORDS = {
  tags: { strong: 'strong', em: 'em', del: 'del' },
  links: /^(?:https?:\/\/|mailto:|tel:)\S/i,
  linksAddresses: false,
} as const;

function renderWords(line: string): string {
  return inlineHtml(parseInline(line), WORDS);
}
