/** What the specification of Matrix allows in `formatted_body`, of what our messages could hold. */
const TAGS = new Set(
  'h1 h2 h3 h4 h5 h6 blockquote p a ul ol li b i u strong em s del code hr br table thead tbody tr th td pre'.split(
    ' ',
  ),
);
const ATTRIBUTES: Readonly<Record<string, RegExp>> = {
  a: /^ href="(?:https?:|ftp:|mailto:|magnet:)[^"<>]*"$/,
  ol: /^ start="\d+"$/,
  code: /^ class="language-[^"<>\s]+"$/,
};
const VOID = new Set(['br', 'hr']);
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };
/** Where people see that another line begins. */
const BREAKS: Readonly<Record<string, string>> = { br: '\n', p: '\n\n', li: '\n', tr: '\n', pre: '\n', hr: '\n' };

/** Reads the HTML of a message as strictly as the specification: returns what people see, or what is wrong with it. */
export function readMatrixHtml(html: string): string | { readonly problem: string } {
  const open: string[] = [];
  let text = '';
  const token = /<(\/?)([a-z]+[1-6]?)((?:\s[^<>]*)?)>|&(\w+);|([^<&>]+)|([\s\S])/g;
  for (const [, close, tag = '', attributes = '', entity, plain, odd] of html.matchAll(token)) {
    if (odd !== undefined) return { problem: `unexpected ${odd}` };
    if (plain !== undefined) text += plain;
    else if (entity !== undefined) {
      const sign = ENTITIES[entity];
      if (sign === undefined) return { problem: `unknown entity ${entity}` };
      text += sign;
    } else {
      const problem = step(open, tag, attributes, close === '/');
      if (problem !== null) return { problem };
      if (text !== '' && (VOID.has(tag) || close === '/')) text += BREAKS[tag] ?? '';
    }
  }
  return open.length === 0 ? text.replace(/\n+$/, '') : { problem: `${open.at(-1)} is not closed` };
}

function step(open: string[], tag: string, attributes: string, closes: boolean): string | null {
  if (!TAGS.has(tag)) return `the tag ${tag} is not allowed`;
  if (closes) return open.pop() === tag ? null : `unmatched end of ${tag}`;
  if (attributes !== '' && ATTRIBUTES[tag]?.test(attributes) !== true) return `${tag} may not have${attributes}`;
  if (tag === 'a' && open.includes('a')) return 'a link in a link';
  if (tag === 'li' && !['ul', 'ol'].includes(open.at(-1) ?? '')) return 'an item outside of a list';
  if (!VOID.has(tag)) open.push(tag);
  return null;
}
