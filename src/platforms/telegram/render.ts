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
  const [, mark, info = ''] = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(lines[at] ?? '') ?? [];
  if (mark === undefined) return null;
  const isClose = (line: string) => {
    const close = line.trim();
    return close.length >= mark.length && close === mark.charAt(0).repeat(close.length);
  };
  const end = lines.findIndex((line, index) => index > at && isClose(line));
  const code = escapeHtml(lines.slice(at + 1, end < 0 ? lines.length : end).join('\n'));
  const language = /^[\w+#.-]{1,32}/.exec(info)?.[0];
  const html =
    language === undefined
      ? `<pre>${code}</pre>`
      : `<pre><code class="language-${escapeHtml(language)}">${code}</code></pre>`;
  return { html: code.trim() === '' ? '' : html, next: end < 0 ? lines.length : end + 1 };
}

/** Telegram has no tables; in one width the columns at least stand where they were written. */
function tableAt(lines: readonly string[], at: number): Block | null {
  const isTable = isRow(lines[at]) && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-*:?\s*)*$/.test(lines[at + 1] ?? '');
  if (!isTable || !isRow(lines[at + 1])) return null;
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
  for (const line of lines.slice(at)) {
    const [marks] = /^ {0,3}(?:> ?)+/.exec(line) ?? [];
    if (marks === undefined) break;
    quoted.push(renderLine(line.slice(marks.length)));
  }
  if (quoted.length === 0) return null;
  const html = quoted.join('\n');
  return { html: html.trim() === '' ? '' : `<blockquote>${html}</blockquote>`, next: at + quoted.length };
}

function renderLine(line: string): string {
  const [, heading] = /^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$/.exec(line) ?? [];
  if (heading !== undefined)
    return heading === '' ? '' : `<b>${renderInline(heading.replace(/^\*\*(.*)\*\*$/, '$1'))}</b>`;
  if (/^ {0,3}([-*_])\s*(?:\1\s*){2,}$/.test(line)) return '———';
  const [item, indent = '', box] = /^(\s*)[-*+]\s+(?:\[([ xX])\]\s+)?/.exec(line) ?? [];
  if (item === undefined) return renderInline(line);
  const sign = box === undefined ? '•' : box === ' ' ? '☐' : '☑';
  return `${indent}${sign} ${renderInline(line.slice(item.length))}`;
}

interface Span {
  readonly html: string;
  readonly end: number;
}

/** Links hold no links. */
function renderInline(text: string, inLink = false): string {
  let html = '';
  for (let at = 0; at < text.length; ) {
    const special = nextSpecial(text, at);
    html += escapeHtml(text.slice(at, special));
    if (special === text.length) break;
    const span =
      escapeAt(text, special) ??
      codeAt(text, special) ??
      (inLink ? null : linkAt(text, special)) ??
      emphasisAt(text, special, inLink);
    html += span?.html ?? escapeHtml(text.charAt(special));
    at = span?.end ?? special + 1;
  }
  return html;
}

function nextSpecial(text: string, from: number): number {
  const special = /[\\`*_~[!]/g;
  special.lastIndex = from;
  return special.exec(text)?.index ?? text.length;
}

function escapeAt(text: string, at: number): Span | null {
  const next = text.charAt(at + 1);
  const isEscape = text.charAt(at) === '\\' && /[!-/:-@[-`{-~]/.test(next);
  return isEscape ? { html: escapeHtml(next), end: at + 2 } : null;
}

function codeAt(text: string, at: number): Span | null {
  if (text.charAt(at) !== '`') return null;
  const mark = runAt(text, at);
  const close = codeEnd(text, at);
  if (close === null) return { html: mark, end: at + mark.length };
  const code = text.slice(at + mark.length, close - mark.length);
  const bare = /^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code;
  return { html: `<code>${escapeHtml(bare)}</code>`, end: close };
}

/** Where the code that begins here ends, its marks included; null if it never does. */
function codeEnd(text: string, at: number): number | null {
  const { length } = runAt(text, at);
  for (let next = text.indexOf('`', at + length); next >= 0; ) {
    const run = runAt(text, next).length;
    if (run === length) return next + run;
    next = text.indexOf('`', next + run);
  }
  return null;
}

function linkAt(text: string, at: number): Span | null {
  const open = text.charAt(at) === '!' ? at + 1 : at;
  const close = text.charAt(open) === '[' ? bracketEnd(text, open) : null;
  if (close === null) return null;
  const target = /\(\s*<?((?:[^\s()<>]|\([^\s()<>]*\))*)>?(?:\s+"[^"]*")?\s*\)/y;
  target.lastIndex = close;
  const [whole, address] = target.exec(text) ?? [];
  if (whole === undefined || !address) return null;
  const label = text.slice(open + 1, close - 1).trim() || address;
  const words = renderInline(label, true);
  const end = close + whole.length;
  if (/^(?:https?:\/\/|mailto:|tel:)\S/i.test(address))
    return { html: `<a href="${escapeHtml(address)}">${words}</a>`, end };
  return { html: label === address ? words : `${words} (${escapeHtml(address)})`, end };
}

/** Where the bracket that opens here is closed, behind it. */
function bracketEnd(text: string, open: number): number | null {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    const sign = text.charAt(at);
    if (sign === '\\') at += 1;
    else if (sign === '[') depth += 1;
    else if (sign === ']') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return null;
}

const EMPHASES: readonly (readonly [mark: string, open: string, close: string])[] = [
  ['***', '<b><i>', '</i></b>'],
  ['___', '<b><i>', '</i></b>'],
  ['**', '<b>', '</b>'],
  ['__', '<b>', '</b>'],
  ['~~', '<s>', '</s>'],
  ['*', '<i>', '</i>'],
  ['_', '<i>', '</i>'],
];

function emphasisAt(text: string, at: number, inLink: boolean): Span | null {
  const run = runAt(text, at);
  if (!'*_~'.includes(run.charAt(0))) return null;
  for (const [mark, open, close] of EMPHASES) {
    if (!run.startsWith(mark) || run.length > 3) continue;
    const start = at + mark.length;
    const end = canOpen(text, at, mark) ? emphasisEnd(text, start, mark) : null;
    if (end === null) continue;
    return { html: `${open}${renderInline(text.slice(start, end), inLink)}${close}`, end: end + mark.length };
  }
  return { html: run, end: at + run.length };
}

/** Marks inside words are no emphasis: names of variables have them, and sums. */
function canOpen(text: string, at: number, mark: string): boolean {
  const inWord = isWord(text.charAt(at - 1)) && mark !== '**' && mark !== '~~';
  return !inWord && /\S/.test(text.charAt(at + mark.length));
}

/** Where the mark that closes the emphasis stands; null if nothing closes it. */
function emphasisEnd(text: string, start: number, mark: string): number | null {
  for (let at = start; at < text.length; ) {
    const sign = text.charAt(at);
    if (sign === '\\') at += 2;
    else if (sign === '`') at = codeEnd(text, at) ?? at + runAt(text, at).length;
    else if (sign !== mark.charAt(0)) at += 1;
    else {
      const run = runAt(text, at);
      const close = at + run.length - mark.length;
      // One mark is not closed by two: those open or close something within.
      const fits = run.length >= mark.length && !(mark.length === 1 && run.length === 2);
      if (fits && canClose(text, at, start, close + mark.length, mark)) return close;
      at += run.length;
    }
  }
  return null;
}

function canClose(text: string, run: number, start: number, behind: number, mark: string): boolean {
  const inWord = isWord(text.charAt(behind)) && mark !== '**' && mark !== '~~';
  return run > start && !inWord && /\S/.test(text.charAt(run - 1));
}

function isWord(sign: string): boolean {
  return /[\p{L}\p{N}_]/u.test(sign);
}

function runAt(text: string, at: number): string {
  const sign = text.charAt(at);
  let end = at + 1;
  while (end < text.length && text.charAt(end) === sign) end += 1;
  return text.slice(at, end);
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
