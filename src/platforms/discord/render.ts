import { codeAt, tableAt } from '../../markdown/blocks.ts';
import { type Inline, parseInline } from '../../markdown/inline.ts';
import { headingOf } from '../../markdown/lines.ts';

/** Texts are cut into messages before; a longer one is refused by the server in any form. */
const LONGEST_FORMATTED = 16_384;
/** Discord knows no smaller headings. */
const SMALLEST_HEADING = 3;

/**
 * Markdown, as models write it, as Discord's own kind of Markdown. What means nothing there, or something else, is written so
 * that people see what was meant.
 */
export function renderDiscord(markdown: string): string {
  // A reply that is durable must not fail in the same way at every try.
  if (markdown.length > LONGEST_FORMATTED) return markdown;
  const lines = markdown.split('\n');
  const rendered: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const block = fenceAt(lines, at) ?? columnsAt(lines, at);
    rendered.push(block?.text ?? renderLine(lines[at] ?? ''));
    at = block?.next ?? at + 1;
  }
  const text = rendered.join('\n');
  // What shows nothing when it is formatted goes as it is.
  return text.trim() === '' ? markdown : text;
}

/** How much of a message a text takes: Discord counts code points. */
export function countPoints(text: string): number {
  let points = 0;
  for (const _ of text) points += 1;
  return points;
}

/** Code that shows as it is, whatever is in it. */
export function codeBlock(code: string, language = ''): string {
  return `\`\`\`${language}\n${code.replaceAll('```', '`\u200b``')}\n\`\`\``;
}

interface Block {
  readonly text: string;
  /** The line behind it. */
  readonly next: number;
}

function fenceAt(lines: readonly string[], at: number): Block | null {
  const found = codeAt(lines, at);
  if (found === null) return null;
  const code = found.lines.join('\n');
  return { text: code.trim() === '' ? '' : codeBlock(code, found.language ?? ''), next: found.next };
}

/** Discord has no tables; in one width the columns at least stand where they were written. */
function columnsAt(lines: readonly string[], at: number): Block | null {
  const table = tableAt(lines, at);
  return table === null ? null : { text: codeBlock(table.lines.join('\n')), next: table.next };
}

function renderLine(line: string): string {
  const heading = headingOf(line);
  if (heading !== null) {
    const words = renderWords(heading.words);
    if (words === '' || heading.level <= SMALLEST_HEADING) return `${'#'.repeat(heading.level)} ${words}`.trimEnd();
    return words.startsWith('**') ? words : `**${words}**`;
  }
  if (/^ {0,3}([-*_])\s*(?:\1\s*){2,}$/.test(line)) return '———';
  // More than one mark would quote everything that follows.
  const [marks] = /^ {0,3}(?:> ?)+/.exec(line) ?? [];
  if (marks !== undefined) return `> ${renderWords(line.slice(marks.length))}`;
  const [item, indent = '', box] = /^(\s*)[-*+]\s+(?:\[([ xX])\]\s+)?/.exec(line) ?? [];
  if (item !== undefined) {
    const sign = box === undefined ? '' : box === ' ' ? '☐ ' : '☑ ';
    return `${indent}- ${sign}${renderWords(line.slice(item.length))}`;
  }
  // Small print on Discord only, and what was escaped in front of a line.
  const [start, space = ''] = /^(\s*)(?:-#\s|\\[#>+-])/.exec(line) ?? [];
  const words = renderWords(line);
  return start === undefined ? words : `${space}\\${words.slice(space.length)}`;
}

const MARKS = { strong: '**', em: '*', del: '~~' } as const;

function renderWords(line: string): string {
  return renderInline(parseInline(line));
}

function renderInline(parts: readonly Inline[]): string {
  return parts.map(renderPart).join('');
}

function renderPart(part: Inline): string {
  if (typeof part === 'string') return escapeMarks(part);
  if (part.type === 'code') return codeSpan(part.text);
  if (part.type !== 'link') return `${MARKS[part.type]}${renderInline(part.inside)}${MARKS[part.type]}`;
  const { address, source } = part;
  // Discord makes links of such addresses by itself.
  if (source === address) return address;
  const words = renderInline(part.inside);
  if (words === escapeMarks(address)) return address;
  if (!/^https?:\/\/\S/i.test(address)) return `${words} (${escapeMarks(address)})`;
  return `[${words}](${address.replace(/[()<>\s]/g, (sign) => `%${sign.charCodeAt(0).toString(16).padStart(2, '0')}`)})`;
}

function codeSpan(code: string): string {
  if (!code.includes('`')) return `\`${code}\``;
  return `\`\` ${code.replaceAll('``', '`\u200b`')} \`\``;
}

/** What would be formatting on Discord and was none in the text. */
function escapeMarks(text: string): string {
  const mayLink = text.includes('](');
  return text.replace(/[\\*`_~|[]/g, (sign, at: number) => {
    const [before, after] = [text.charAt(at - 1), text.charAt(at + 1)];
    if (sign === '\\') return /[0-9A-Za-z\s]/.test(after) ? sign : `\\${sign}`;
    if (sign === '_') return isInWord(before) && isInWord(after) ? sign : `\\${sign}`;
    if (sign === '~' || sign === '|') return before === sign || after === sign ? `\\${sign}` : sign;
    if (sign === '[') return mayLink ? `\\${sign}` : sign;
    return `\\${sign}`;
  });
}

function isInWord(sign: string): boolean {
  return /[\p{L}\p{N}]/u.test(sign);
}
