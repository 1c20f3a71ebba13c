import { MoiraiError } from '../errors/moirai-error.ts';
import { MAX_TEXT_CHARS } from './limits.ts';

/**
 * A value with every text in it as both engines can keep it: lone surrogates (they have no UTF-8) and NUL (PostgreSQL
 * has none) become U+FFFD. Too long a text is refused rather than cut. Applied to all that enters the store, so that
 * its rows and its events say the same.
 */
export function storable<T>(value: T, what = 'the request'): T {
  if (typeof value === 'string') return storableText(value, what) as T;
  if (typeof value !== 'object' || value === null) return value;
  let copy: Record<string, unknown> | null = null;
  for (const name of Object.keys(value)) {
    const part = (value as Record<string, unknown>)[name];
    const kept = storable(part, name);
    if (kept === part) continue;
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
    copy[name] = kept;
  }
  return (copy ?? value) as T;
}

/** The same for one text. */
export function storableText(text: string, what: string): string {
  if (text.length > MAX_TEXT_CHARS) {
    throw new MoiraiError(
      'message_too_large',
      `${what} has ${text.length} characters; at most ${MAX_TEXT_CHARS} are kept`,
    );
  }
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\uFFFD') : wellFormed;
}
