const TAG = /<(\/?)([a-z][a-z0-9]{0,15}|!--|[!?])/gi;
/** What nobody reads on a page, and how its end is found. */
const UNREAD: ReadonlyMap<string, RegExp> = new Map([
  ['script', /<\/script\b/gi],
  ['style', /<\/style\b/gi],
  ['noscript', /<\/noscript\b/gi],
  ['svg', /<\/svg\b/gi],
  ['head', /<\/head\b/gi],
  ['template', /<\/template\b/gi],
]);
const LINE_BREAKS: ReadonlySet<string> = new Set(
  'br hr p div section article h1 h2 h3 h4 h5 h6 ul ol table tr pre blockquote'.split(' '),
);
const ENTITIES: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', mdash: '—', ndash: '–', hellip: '…', copy: '©' },
};

/**
 * What a person would read on a page, roughly: no scripts, no marks, blocks on lines of their own. Every character is
 * looked at a fixed number of times, whatever the page was made for.
 */
export function pageText(html: string): string {
  const text = linesOf(decoded(withoutTags(html)));
  const title = titleOf(html);
  return title === '' ? text : `${decoded(title)}\n\n${text}`;
}

function withoutTags(html: string): string {
  const parts: string[] = [];
  /** Elements that nothing closes from here on. */
  const unclosed = new Set<string>();
  for (let at = 0; at < html.length; ) {
    TAG.lastIndex = at;
    const found = TAG.exec(html);
    if (found === null) return parts.join('') + html.slice(at);
    const tag = tagIn(html, found);
    parts.push(html.slice(at, found.index), shownFor(tag));
    at = tag.opens ? behindUnread(html, tag, unclosed) : tag.end;
  }
  return parts.join('');
}

interface Tag {
  readonly name: string;
  readonly opens: boolean;
  /** Behind it. */
  readonly end: number;
}

/** The tag or comment that was found. A comment without an end goes to the end of the page. */
function tagIn(html: string, { 1: slash, 2: name = '', index }: RegExpExecArray): Tag {
  if (name === '!--') return { name, opens: false, end: behind(html, '-->', index + 4) };
  return { name: name.toLowerCase(), opens: slash === '', end: behind(html, '>', index + 1) };
}

function behind(html: string, sign: string, from: number): number {
  const at = html.indexOf(sign, from);
  return at < 0 ? html.length : at + sign.length;
}

function shownFor({ name, opens }: Tag): string {
  if (name === 'li' && opens) return '\n- ';
  return LINE_BREAKS.has(name) ? '\n' : '';
}

/** Behind the whole element if it is one that is not read. What is never closed is read: a head need not be closed. */
function behindUnread(html: string, { name, end }: Tag, unclosed: Set<string>): number {
  const close = unclosed.has(name) ? undefined : UNREAD.get(name);
  if (close === undefined) return end;
  close.lastIndex = end;
  const found = close.exec(html);
  if (found === null) unclosed.add(name);
  return found === null ? end : behind(html, '>', found.index);
}

function titleOf(html: string): string {
  const start = html.search(/<title\b/i);
  const open = start < 0 ? -1 : html.indexOf('>', start);
  if (open < 0) return '';
  const close = html.indexOf('<', open);
  return html.slice(open + 1, close < 0 ? html.length : close).trim();
}

function linesOf(text: string): string {
  const lines = text.split('\n').map((line) => line.replace(/[ \t\u00a0]+/g, ' ').trim());
  return lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

function decoded(text: string): string {
  return text.replace(/&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]{1,16});/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return ENTITIES[name.toLowerCase()] ?? whole;
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
