import { compile } from 'html-to-text';

/** Longer HTML is cut: nobody writes as much by hand, and reading it keeps everybody else waiting. */
const LONGEST_HTML = 256 * 1024;
const DEEPEST = 100;
const MOST_CHILDREN = 4000;

const options = {
  wordwrap: false,
  limits: { maxInputLength: LONGEST_HTML, maxDepth: 2 * DEEPEST, maxChildNodes: MOST_CHILDREN, ellipsis: '' },
} as const;

const shown = [
  { selector: 'a', options: { hideLinkHrefIfSameAsText: true, linkBrackets: ['(', ')'], noAnchorUrl: true } },
  ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, options: { uppercase: false } })),
  ...['img', 'head', 'style', 'script', 'title'].map((selector) => ({ selector, format: 'skip' })),
];

/** How mail programs mark what they quote. */
const QUOTES = [
  'blockquote[type=cite]',
  '.gmail_quote',
  '.yahoo_quoted',
  '.protonmail_quote',
  '.moz-cite-prefix',
  '.zmail_extra',
  '.tutanota_quote',
  '#mail-editor-reference-message-container',
];

const withQuotes = compile({ ...options, selectors: shown });
const withoutQuotes = compile({
  ...options,
  selectors: [...shown, ...QUOTES.map((selector) => ({ selector, format: 'skip' }))],
});

/** The text of an HTML mail, without what it quotes unless that is wanted. Linear in the length of the HTML. */
export function htmlText(html: string, quotes: 'kept' | 'left out'): string {
  const convert = quotes === 'kept' ? withQuotes : withoutQuotes;
  try {
    return convert(flattened(html.slice(0, LONGEST_HTML))).trim();
  } catch {
    return '';
  }
}

const VOID: ReadonlySet<string> = new Set(['br', 'hr', 'img', 'input', 'link', 'meta', 'wbr', 'area', 'col', 'source']);

/** Without the tags of elements deeper than anybody writes: the parser takes longer for each level above. */
function flattened(html: string): string {
  const open: string[] = [];
  const kept: string[] = [];
  let from = 0;
  let end = 0;
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) {
    // The same one is the end of all that begins before it, and is looked for once.
    if (end < at) end = html.indexOf('>', at);
    if (end < 0) break;
    const [, slash, written] = /^<(\/?)([a-z][^\s/>]{0,40})/i.exec(html.slice(at, at + 50)) ?? [];
    if (written === undefined) continue;
    const name = written.toLowerCase();
    if (!isLeftOut(open, name, slash === '/')) continue;
    kept.push(html.slice(from, at));
    from = end + 1;
    at = end;
  }
  kept.push(html.slice(from));
  return kept.join('');
}

/** Notes what the tag opens or closes; true for one that is too deep, or closes nothing. */
function isLeftOut(open: string[], name: string, closes: boolean): boolean {
  if (closes) {
    const at = open.lastIndexOf(name);
    if (at >= 0) open.length = at;
    return at < 0 && name !== 'br' && name !== 'p';
  }
  if (VOID.has(name)) return false;
  if (open.length >= DEEPEST) return true;
  open.push(name);
  return false;
}
