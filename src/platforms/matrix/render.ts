import { codeAt, isTableStart, tableAt } from '../../markdown/blocks.ts';
import { escapeHtml, inlineHtml } from '../../markdown/html.ts';
import { parseInline } from '../../markdown/inline.ts';
import { fenceOpening, headingOf } from '../../markdown/lines.ts';
import { type Item, itemOf, renderItems } from './render-list.ts';

/** A text as Matrix has it: plain words for every client, and HTML for those that show it. */
export interface RenderedMessage {
  readonly body: string;
  /** Null where the plain words say all. */
  readonly formatted: string | null;
}

/** More fits into no event, in any form: texts are cut into messages before. */
const LONGEST = 65_536;

/**
 * Markdown, as models write it, as a Matrix message: the HTML has only what the specification allows. What is not known
 * stays as it is, escaped.
 */
export function renderMessage(markdown: string): RenderedMessage {
  const body = markdown.toWellFormed().replaceAll('\0', '');
  if (body.length > LONGEST) return { body, formatted: null };
  const blocks = blocksOf(body.split('\n'), 0);
  if (blocks.every((block) => !block.isMarked)) return { body, formatted: null };
  return { body, formatted: joined(blocks) };
}

interface Block {
  readonly html: string;
  /** Words without a frame of their own. */
  readonly isParagraph: boolean;
  /** The plain words do not say all of it. */
  readonly isMarked: boolean;
  /** The line behind it. */
  readonly next: number;
}

/** Quotes in quotes in quotes: nobody writes more, and a renderer must not run out of stack. */
const DEEPEST = 6;

function blocksOf(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    if (isBlank(lines[at])) at += 1;
    else {
      const block = framedAt(lines, at, depth) ?? paragraphAt(lines, at, depth);
      blocks.push(block);
      at = block.next;
    }
  }
  return blocks;
}

/** One paragraph alone needs no frame. */
function joined(blocks: readonly Block[]): string {
  const [only] = blocks;
  if (blocks.length === 1 && only?.isParagraph) return only.html;
  return blocks.map(({ html, isParagraph }) => (isParagraph ? `<p>${html}</p>` : html)).join('');
}

function framedAt(lines: readonly string[], at: number, depth: number): Block | null {
  const line = lines[at] ?? '';
  return fenceAt(lines, at) ?? rowsAt(lines, at) ?? quoteAt(lines, at, depth) ?? lineAt(line, at) ?? listAt(lines, at);
}

/** Whether a block begins here that ends the words before it. */
function isFrameStart(lines: readonly string[], at: number, depth: number): boolean {
  const line = lines[at] ?? '';
  if (fenceOpening(line) !== null || itemOf(line) !== null || isTableStart(lines, at)) return true;
  return (depth < DEEPEST && QUOTED.test(line)) || lineAt(line, at) !== null;
}

function framed(html: string, next: number): Block {
  return { html, isParagraph: false, isMarked: true, next };
}

function fenceAt(lines: readonly string[], at: number): Block | null {
  const found = codeAt(lines, at);
  if (found === null) return null;
  const name = found.language === null ? '' : ` class="language-${escapeHtml(found.language)}"`;
  return framed(`<pre><code${name}>${escapeHtml(found.lines.join('\n'))}</code></pre>`, found.next);
}

function rowsAt(lines: readonly string[], at: number): Block | null {
  const table = tableAt(lines, at);
  if (table === null) return null;
  const row = (line: string, tag: string) =>
    `<tr>${cellsOf(line)
      .map((cell) => `<${tag}>${renderWords(cell)}</${tag}>`)
      .join('')}</tr>`;
  const [head = '', , ...rest] = table.lines;
  const rows = rest.map((line) => row(line, 'td'));
  const body = rows.length === 0 ? '' : `<tbody>${rows.join('')}</tbody>`;
  return framed(`<table><thead>${row(head, 'th')}</thead>${body}</table>`, table.next);
}

/** What stands between bars; one with a backslash in front of it is a part of the words. */
function cellsOf(line: string): string[] {
  const cells = [''];
  const inner = line.trim();
  for (let at = inner.startsWith('|') ? 1 : 0; at < inner.length; at += 1) {
    const sign = inner.charAt(at);
    if (sign === '\\' && inner.charAt(at + 1) === '|') {
      cells.push(`${cells.pop() ?? ''}|`);
      at += 1;
    } else if (sign === '|') cells.push('');
    else cells.push(`${cells.pop() ?? ''}${sign}`);
  }
  if (inner.endsWith('|') && !inner.endsWith('\\|')) cells.pop();
  return cells.map((cell) => cell.trim());
}

const QUOTED = /^ {0,3}> ?/;

function quoteAt(lines: readonly string[], at: number, depth: number): Block | null {
  const quoted: string[] = [];
  if (depth >= DEEPEST) return null;
  for (let next = at; next < lines.length; next += 1) {
    const [mark] = QUOTED.exec(lines[next] ?? '') ?? [];
    if (mark === undefined) break;
    quoted.push((lines[next] ?? '').slice(mark.length));
  }
  if (quoted.length === 0) return null;
  return framed(`<blockquote>${joined(blocksOf(quoted, depth + 1))}</blockquote>`, at + quoted.length);
}

/** A heading, or a line across. */
function lineAt(line: string, at: number): Block | null {
  if (/^ {0,3}([-*_])\s*(?:\1\s*){2,}$/.test(line)) return framed('<hr>', at + 1);
  const heading = headingOf(line);
  if (heading === null || heading.words === '') return null;
  const { level, words } = heading;
  return framed(`<h${level}>${renderWords(words)}</h${level}>`, at + 1);
}

/** The lines of a list: its items, what goes on below them, and blank lines between them. */
function listAt(lines: readonly string[], at: number): Block | null {
  const items: Item[] = [];
  let next = at;
  for (; next < lines.length; next += 1) {
    const line = lines[next] ?? '';
    const item = lineAt(line, next) === null && fenceOpening(line) === null ? itemOf(line) : null;
    const last = items.at(-1);
    if (item !== null) items.push({ ...item, html: boxed(item.words) });
    else if (last === undefined) return null;
    else if (isBlank(line)) {
      if (itemOf(lines[next + 1] ?? '') === null) break;
    } else if (!/^\s/.test(line) || fenceOpening(line) !== null || isBlank(lines[next - 1])) break;
    else items.push({ ...(items.pop() ?? last), html: `${last.html}<br>${renderWords(line.trim())}` });
  }
  return items.length === 0 ? null : framed(renderItems(items), next);
}

function boxed(words: string): string {
  const [box, state] = /^\[([ xX])\]\s/.exec(words) ?? [];
  if (box === undefined) return renderWords(words);
  return `${state === ' ' ? '☐' : '☑'} ${renderWords(words.slice(box.length))}`;
}

function paragraphAt(lines: readonly string[], at: number, depth: number): Block {
  const shown: string[] = [];
  let isMarked = false;
  let next = at;
  for (; next < lines.length && !isBlank(lines[next]); next += 1) {
    if (next > at && isFrameStart(lines, next, depth)) break;
    const line = lines[next] ?? '';
    const html = renderWords(line);
    isMarked ||= html !== escapeHtml(line);
    shown.push(html);
  }
  return { html: shown.join('<br>'), isParagraph: true, isMarked, next };
}

function isBlank(line: string | undefined): boolean {
  return line === undefined || line.trim() === '';
}

const WORDS = {
  tags: { strong: 'strong', em: 'em', del: 'del' },
  links: /^(?:https?:\/\/|mailto:)\S/i,
  linksAddresses: true,
} as const;

function renderWords(line: string): string {
  return inlineHtml(parseInline(line), WORDS);
}
