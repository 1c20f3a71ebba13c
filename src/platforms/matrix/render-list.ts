/** An item of a list, in one line. */
export interface ItemLine {
  readonly indent: number;
  /** The number of an item that is counted; null for one that is not. */
  readonly number: number | null;
  readonly words: string;
}

export interface Item extends ItemLine {
  readonly html: string;
}

/** Lists in lists beyond this stand side by side. */
const DEEPEST = 8;

export function itemOf(line: string): ItemLine | null {
  const [whole, indent = '', number] = /^([ \t]{0,32})(?:[-*+]|(\d{1,9})[.)])[ \t]+/.exec(line) ?? [];
  if (whole === undefined) return null;
  const width = indent.replaceAll('\t', '    ').length;
  return { indent: width, number: number === undefined ? null : Number(number), words: line.slice(whole.length) };
}

interface OpenList {
  readonly indent: number;
  readonly tag: 'ol' | 'ul';
}

/** Items as lists in lists, by how far each stands from the margin. */
export function renderItems(items: readonly Item[]): string {
  const open: OpenList[] = [];
  const html: string[] = [];
  const close = () => html.push(`</li></${open.pop()?.tag}>`);
  for (const { indent, number, html: words } of items) {
    const tag = number === null ? 'ul' : 'ol';
    while (open.length > 1 && indent < (open.at(-1)?.indent ?? 0)) close();
    const list = open.at(-1);
    const isDeeper = list === undefined || (indent >= list.indent + 2 && open.length < DEEPEST);
    if (!isDeeper && list.tag === tag) html.push('</li>');
    else {
      if (!isDeeper) close();
      open.push({ indent, tag });
      html.push(number === null || number === 1 ? `<${tag}>` : `<ol start="${number}">`);
    }
    html.push(`<li>${words}`);
  }
  while (open.length > 0) close();
  return html.join('');
}
