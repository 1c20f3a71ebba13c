import { type Inline, parseInline } from '../../markdown/inline.ts';
import { closesFence, fenceOpening, headingOf, isTableRule } from '../../markdown/lines.ts';
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
  return fenceAt(lines, at) ?? tableAt(lines, at) ?? quoteAt(lines, at, depth) ?? lineAt(line, at) ?? listAt(lines, at);
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

/** A fence that is never closed goes to the end: the rest of it is still being written. */
function fenceAt(lines: readonly string[], at: number): Block | null {
  const opening = fenceOpening(lines[at] ?? '');
  if (opening === null) return null;
  let end = at + 1;
  while (end < lines.length && !closesFence(lines[end] ?? '', opening.mark)) end += 1;
  const code = escapeHtml(lines.slice(at + 1, end).join('\n'));
  const language = /^[\w+#.-]{1,32}/.exec(opening.info)?.[0];
  const name = language === undefined ? '' : ` class="language-${escapeHtml(language)}"`;
  return framed(`<pre><code${name}>${code}</code></pre>`, end + 1);
}

function tableAt(lines: readonly string[], at: number): Block | null {
  if (!isTableStart(lines, at)) return null;
  let next = at + 2;
  while (isRow(lines[next])) next += 1;
  const row = (line: string, tag: string) =>
    `<tr>${cellsOf(line)
      .map((cell) => `<${tag}>${renderWords(cell)}</${tag}>`)
      .join('')}</tr>`;
  const rows = lines.slice(at + 2, next).map((line) => row(line, 'td'));
  const body = rows.length === 0 ? '' : `<tbody>${rows.join('')}</tbody>`;
  return framed(`<table><thead>${row(lines[at] ?? '', 'th')}</thead>${body}</table>`, next);
}

function isTableStart(lines: readonly string[], at: number): boolean {
  return isRow(lines[at]) && isRow(lines[at + 1]) && isTableRule(lines[at + 1] ?? '');
}

function isRow(line: string | undefined): boolean {
  return line?.includes('|') === true;
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

const TAGS = { strong: 'strong', em: 'em', del: 'del' } as const;

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
  // Clients make links of such addresses by themselves.
  if (source === address) return words;
  if (/^(?:https?:\/\/|mailto:)\S/i.test(address)) return `<a href="${escapeHtml(address)}">${words}</a>`;
  return words === escapeHtml(address) ? words : `${words} (${escapeHtml(address)})`;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
