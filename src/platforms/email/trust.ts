import { domainOf } from './account.ts';
import type { Head } from './head.ts';

/**
 * Whether our own server has proven that a mail comes from the domain in its From: the topmost
 * `Authentication-Results` (RFC 8601) of that server says that it passed DMARC. The server puts its own above those
 * that came with the mail, so no other of them counts.
 */
export function isProven({ fields, from }: Head, authservId: string): boolean {
  if (from === null) return false;
  const results = (fields.get('authentication-results') ?? []).map(readResults);
  const own = results.find(({ authserv }) => authserv === authservId);
  return (own?.methods ?? []).some(({ method, result, domain }) => {
    return method === 'dmarc' && result === 'pass' && (domain === null || domain === domainOf(from.address));
  });
}

interface Results {
  readonly authserv: string;
  readonly methods: readonly { readonly method: string; readonly result: string; readonly domain: string | null }[];
}

const LONGEST = 16_384;

/** Reads one header. What stands in quotes and in comments may be chosen by the sender: neither is read as a result. */
export function readResults(value: string): Results {
  const [head = [], ...parts] = split(value.slice(0, LONGEST).toLowerCase());
  const methods = parts.map(([first = '', ...properties]) => {
    const [method = '', result = ''] = first.split('=');
    const from = properties.find((property) => property.startsWith('header.from='));
    return { method: method.split('/')[0] ?? '', result, domain: from?.slice('header.from='.length) ?? null };
  });
  return { authserv: head[0] ?? '', methods };
}

/** The words between the semicolons; one in quotes is a word of its own kind, and a comment is nothing. */
function split(value: string): string[][] {
  const parts: string[][] = [[]];
  let word = '';
  const endWord = (): void => {
    if (word !== '') parts.at(-1)?.push(word);
    word = '';
  };
  for (let at = 0; at < value.length; at += 1) {
    const sign = value.charAt(at);
    if (sign === '(') {
      endWord();
      at = commentEnd(value, at);
    } else if (sign === '"') {
      const end = quoteEnd(value, at);
      word += value.slice(at, end + 1).replace(/[\s;]/g, '_');
      at = end;
    } else if (sign === ';') {
      endWord();
      parts.push([]);
    } else if (/\s/.test(sign)) {
      // Blanks may stand around the sign between a method and its result.
      const next = nextSign(value, at);
      if (value.charAt(next) !== '=' && !word.endsWith('=')) endWord();
      at = next - 1;
    } else word += sign;
  }
  endWord();
  return parts;
}

function nextSign(value: string, from: number): number {
  let at = from;
  while (at < value.length && /\s/.test(value.charAt(at))) at += 1;
  return at;
}

/** Of comments in each other, the end of the outermost; of one that does not end, the end of all. */
function commentEnd(value: string, open: number): number {
  let depth = 0;
  for (let at = open; at < value.length; at += 1) {
    const sign = value.charAt(at);
    if (sign === '\\') at += 1;
    else if (sign === '(') depth += 1;
    else if (sign === ')') depth -= 1;
    if (depth === 0) return at;
  }
  return value.length;
}

function quoteEnd(value: string, open: number): number {
  for (let at = open + 1; at < value.length; at += 1) {
    if (value.charAt(at) === '\\') at += 1;
    else if (value.charAt(at) === '"') return at;
  }
  return value.length;
}
