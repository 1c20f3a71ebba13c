const TAGS = new Set(['b', 'i', 's', 'u', 'a', 'code', 'pre', 'blockquote']);
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };

/** Reads Telegram's HTML as strictly as Telegram: returns what people see, or what cannot be read. */
export function readHtml(html: string): string | { readonly problem: string } {
  const open: string[] = [];
  let text = '';
  const token = /<(\/?)([a-z]+)((?:\s[^<>]*)?)>|&(\w+);|([^<&]+)|([\s\S])/g;
  for (const [, close, tag, , entity, plain, odd] of html.matchAll(token)) {
    if (odd !== undefined) return { problem: `unexpected ${odd}` };
    if (plain !== undefined) text += plain;
    else if (entity !== undefined) {
      const sign = ENTITIES[entity];
      if (sign === undefined) return { problem: `unknown entity ${entity}` };
      text += sign;
    } else {
      const problem = step(open, tag ?? '', close === '/');
      if (problem !== null) return { problem };
    }
  }
  return open.length === 0 ? text : { problem: `can't find end tag corresponding to start tag ${open.at(-1)}` };
}

function step(open: string[], tag: string, closes: boolean): string | null {
  if (!TAGS.has(tag)) return `unsupported start tag "${tag}"`;
  if (closes) return open.pop() === tag ? null : `unmatched end tag ${tag}`;
  if (tag === 'blockquote' && open.includes('blockquote')) return 'nested blockquote';
  if (tag === 'a' && open.includes('a')) return 'nested link';
  open.push(tag);
  return null;
}
