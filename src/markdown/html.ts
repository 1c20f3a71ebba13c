import type { Inline } from './inline.ts';

export interface HtmlWords {
  /** What emphasis is called. */
  readonly tags: Readonly<Record<'strong' | 'em' | 'del', string>>;
  /** Links to other addresses are shown in words. */
  readonly links: RegExp;
  /** Clients make links of addresses that stand as such by themselves. */
  readonly linksAddresses: boolean;
}

/** The words of a line as HTML, in which nothing is a tag that is not one of these. */
export function inlineHtml(parts: readonly Inline[], how: HtmlWords): string {
  return parts.map((part) => partHtml(part, how)).join('');
}

function partHtml(part: Inline, how: HtmlWords): string {
  if (typeof part === 'string') return escapeHtml(part);
  if (part.type === 'code') return `<code>${escapeHtml(part.text)}</code>`;
  const words = inlineHtml(part.inside, how);
  if (part.type !== 'link') return `<${how.tags[part.type]}>${words}</${how.tags[part.type]}>`;
  const { address, source } = part;
  if (how.linksAddresses && source === address) return words;
  if (how.links.test(address)) return `<a href="${escapeHtml(address)}">${words}</a>`;
  return words === escapeHtml(address) ? words : `${words} (${escapeHtml(address)})`;
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
