import { MoiraiError } from '../errors/moirai-error.ts';

const MAX_PART = 256;
// Cc is C0, DEL and C1; Cs under the u flag is a surrogate without its pair; U+FFFD stands for a character that was lost,
// and two that were lost look the same; the rest breaks or reorders printed lines.
const UNSAFE = /[\p{Cc}\p{Cs}\ufffd\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;
const FOREIGN_ESCAPE = /%(?!3A|25)/;
// The colon stands for the drive of `C:..\x`.
const TRAVERSAL = /(?:^|[/\\:])\.\.?(?:[/\\]|$)/;
// A letter and a colon alone are no drive: Signal user names are `u:name.01`.
const ROOTED = /^(?:[/\\]|[A-Za-z]:(?:[/\\]|$))/;

/** Throws `bad_key` for what no part of a session key may be. */
export function checkPart(part: string, value: string): void {
  if (typeof value !== 'string') throw badKey(`${part} is not text`);
  if (value === '') throw badKey(`${part} is empty`);
  if (value.length > MAX_PART) throw badKey(`${part} has ${value.length} characters, at most ${MAX_PART} may be`);
  const unsafe = UNSAFE.exec(value);
  if (unsafe !== null)
    throw badKey(`${part} has the unsafe character ${codePoint(unsafe[0])} at position ${unsafe.index}`);
  if (TRAVERSAL.test(value)) throw badKey(`${part} ${quote(value)} has a path step . or ..`);
  if (ROOTED.test(value)) throw badKey(`${part} ${quote(value)} begins like an absolute path`);
}

export function escapePart(text: string): string {
  return text.replaceAll('%', '%25').replaceAll(':', '%3A');
}

export function unescapePart(part: string, text: string): string {
  const foreign = text.search(FOREIGN_ESCAPE);
  if (foreign >= 0) throw badKey(`${part} has a % at position ${foreign} that begins neither %3A nor %25`);
  return text.replaceAll('%3A', ':').replaceAll('%25', '%');
}

/** Safe to print: cut short, and unsafe characters shown as their code points. */
export function quote(text: unknown): string {
  const signs = [...String(text).slice(0, 80)];
  const shown = signs.map((sign) => (UNSAFE.test(sign) ? codePoint(sign) : sign)).join('');
  return JSON.stringify(shown);
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

export function badKey(fault: string): MoiraiError {
  return new MoiraiError('bad_key', `bad session key: ${fault}`);
}
