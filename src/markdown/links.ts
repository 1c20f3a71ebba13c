/** Where the addresses of links end. Every loop stops at the next sign that could begin another link. */

/** The target `(address "title")` of a link that begins here; null if there is none. */
export function linkTargetAt(text: string, open: number): { readonly address: string; readonly end: number } | null {
  if (text.charAt(open) !== '(') return null;
  let at = skipBlanks(text, open + 1);
  if (text.charAt(at) === '<') at += 1;
  const end = addressEnd(text, at);
  const address = text.slice(at, end);
  if (address === '') return null;
  at = text.charAt(end) === '>' ? end + 1 : end;
  const behind = skipBlanks(text, at);
  const close = behind > at && text.charAt(behind) === '"' ? text.indexOf('"', behind + 1) : -1;
  at = close < 0 ? behind : skipBlanks(text, close + 1);
  return text.charAt(at) === ')' ? { address, end: at + 1 } : null;
}

/** An address may have parentheses in it, but none in those. */
function addressEnd(text: string, start: number): number {
  let at = start;
  for (;;) {
    while (at < text.length && !/[\s()<>]/.test(text.charAt(at))) at += 1;
    if (text.charAt(at) !== '(') return at;
    let inner = at + 1;
    while (inner < text.length && !/[\s()<>]/.test(text.charAt(inner))) inner += 1;
    if (text.charAt(inner) !== ')') return at;
    at = inner + 1;
  }
}

function skipBlanks(text: string, start: number): number {
  let at = start;
  while (at < text.length && /\s/.test(text.charAt(at))) at += 1;
  return at;
}

/**
 * Where an address that stands in a text by itself ends: before what ends the sentence, or the parentheses around it.
 * Null if it is a part of a word, or has nothing behind its slashes.
 */
export function urlEndAt(text: string, start: number): number | null {
  if (/\w/.test(text.charAt(start - 1))) return null;
  const least = text.indexOf('//', start) + 2;
  let depth = 0;
  let end = least;
  for (; end < text.length && !/[\s<>"`[\]]/.test(text.charAt(end)); end += 1) {
    const sign = text.charAt(end);
    if (sign === '(') depth += 1;
    else if (sign === ')' && depth === 0) break;
    else if (sign === ')') depth -= 1;
  }
  while (end > least && /[.,;:!?'*_~]/.test(text.charAt(end - 1))) end -= 1;
  return end === least ? null : end;
}
